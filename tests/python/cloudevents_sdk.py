#!/usr/bin/env python3
"""The official CloudEvents SDK reads the Kafka records we write, and writes them back.

    cloudevents_sdk.py < records.ndjson > answers.ndjson

Each input line: {"mode": "binary" | "structured", "headers": [[name, text]], "value": hex, "expect": the event as JSON}.
`expect.data` is the data as a JSON value; where it is absent the data are bytes (protobuf), compared with `value`.
Each output line: {"headers": [[name, text]], "value": hex}, the SDK's own record of the event it read.
Exit 1, with the difference on standard error, where what the SDK read is not what was expected.
"""
import json
import sys
from datetime import datetime

from cloudevents.core.bindings.kafka import KafkaMessage, from_binary, from_structured, to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat

FORMAT = JSONFormat()


def differences(event, expect, value):
    """What the SDK read otherwise than expected."""
    read = {"id": event.get_id(), "source": event.get_source(), "type": event.get_type(), "specversion": event.get_specversion(),
            "time": event.get_time()}
    expected = {**{k: expect[k] for k in ("id", "source", "type", "specversion")},
                "time": datetime.fromisoformat(expect["time"].replace("Z", "+00:00"))}
    found = [f"{k}: read {read[k]!r}, expected {v!r}" for k, v in expected.items() if read[k] != v]
    data = expect.get("data", value)
    if event.get_data() != data:
        found.append(f"data: read {event.get_data()!r}, expected {data!r}")
    return found


def main():
    count = 0
    for line in sys.stdin:
        record = json.loads(line)
        value = bytes.fromhex(record["value"])
        message = KafkaMessage(headers={k: v.encode() for k, v in record["headers"]}, key=None, value=value)
        binary = record["mode"] == "binary"
        event = (from_binary if binary else from_structured)(message, FORMAT)
        wrong = differences(event, record["expect"], value)
        if wrong:
            sys.exit("\n".join([f"{record['mode']} {record['expect']['type']}:", *wrong]))
        back = (to_binary if binary else to_structured)(event, FORMAT)
        headers = [[k, v.decode()] for k, v in back.headers.items()]
        print(json.dumps({"headers": headers, "value": back.value.hex()}))
        count += 1
    print(f"{count} records read back equal", file=sys.stderr)


if __name__ == "__main__":
    main()
