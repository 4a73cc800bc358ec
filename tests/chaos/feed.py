"""The producer: one `publish -` for the whole run, fed piece by piece, so that there is always something left to lose."""
import os
import subprocess
import threading

from place import Failed


class Feed:
    """Publishes a file as far as it is allowed to."""

    def __init__(self, ledger, path, total, log):
        self.total, self.path, self.allowed = total, path, 0
        self.more = threading.Condition()
        self.log = open(log, "w", encoding="utf-8")
        self.process = subprocess.Popen([ledger.binary, "publish", "-"], env={**os.environ, **ledger.env}, stdin=subprocess.PIPE,
                                        stdout=self.log, stderr=subprocess.STDOUT)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            with open(self.path, "rb") as lines:
                for number, line in enumerate(lines):
                    with self.more:
                        self.more.wait_for(lambda n=number: self.allowed > n)
                    self.process.stdin.write(line)
                    if number + 1 == self.allowed:
                        self.process.stdin.flush()
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # its exit status says it

    def allow(self, lines):
        with self.more:
            self.allowed = min(self.allowed + lines, self.total)
            self.more.notify()

    def is_alive(self):
        return self.process.poll() in (None, 0)

    def finish(self):
        """Sends the rest and waits until all is acknowledged."""
        self.allow(self.total)
        self.thread.join()
        code = self.process.wait()
        self.log.close()
        if code:
            raise Failed(f"publish exit {code}: see {self.log.name}")

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
