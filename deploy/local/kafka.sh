#!/usr/bin/env bash
# A private Kafka for this checkout: one KRaft node on the loopback, which makes no topics by itself.
#
#   kafka.sh start          starts it where it does not run; prints its bootstrap address as last line
#   kafka.sh stop           stops it in good order; data stay
#   kafka.sh kill           ends it as a crash would (SIGKILL); data stay
#   kafka.sh restart [kill] stop or kill, then start: same port, same data
#   kafka.sh bootstrap      prints the address; fails where it does not run
#
# KAFKA_BOOTSTRAP, where set, is used instead: nothing is then started or stopped. Else a container engine (docker, podman)
# if one answers; else the broker's own jars from Maven Central (pom.xml), with the Java that is installed.
# KAFKA_FROM=jars or KAFKA_FROM=container insists on one of them.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

OLDEST_JAVA=17
DIR=$STATE/kafka
CONFIG=$DIR/server.properties
LOG=$DIR/log
CONTAINER=gpuledger-kafka-$KEY
READY='Kafka Server started'
PATIENCE=90

version() { sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$HERE/pom.xml"; }

address() { echo "127.0.0.1:$(cat "$DIR/port")"; }

# ---- by jars ------------------------------------------------------------------------------------------------------

find_java() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java major
    have "$java" || die 3 "Kafka needs a container engine or Java $OLDEST_JAVA: run deploy/local/install.sh, or set KAFKA_BOOTSTRAP"
    major=$("$java" -version 2>&1 | sed -nE '1s/.*version "([0-9]+).*/\1/p')
    [ "${major:-0}" -ge "$OLDEST_JAVA" ] || die 3 "$java is version ${major:-unknown}; Kafka needs $OLDEST_JAVA or newer"
    echo "$java"
}

# Once for each version: the jars, into a directory that appears only when it is complete.
fetch_jars() {
    local libs=$DIR/libs log=$DIR/maven.log
    [ "$(cat "$libs/.version" 2>/dev/null)" != "$(cksum <"$HERE/pom.xml")" ] || return 0
    have mvn || die 3 "the jars of Kafka are fetched by Maven, which is missing: run deploy/local/install.sh"
    say "fetching Kafka $(version) from Maven Central (45 MB, once)"
    rm -rf "$libs" "$libs.new"
    mvn -B -q -f "$HERE/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$libs.new" \
        >"$log" 2>&1 </dev/null || die 3 "Maven could not fetch them: $(grep -m1 ERROR "$log" || tail -n 1 "$log")"
    cksum <"$HERE/pom.xml" >"$libs.new/.version"
    mv "$libs.new" "$libs"
}

# The same settings for both ways of running; the container reads them as variables.
settings() {
    cat <<CONF
node.id=1
process.roles=broker,controller
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
auto.create.topics.enable=false
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.hours=-1
message.max.bytes=16777216
CONF
}

configure() {
    local port controller
    port=$(remembered_port "$DIR/port")
    controller=$(remembered_port "$DIR/controller-port")
    while [ "$controller" = "$port" ]; do
        controller=$(free_port)
        echo "$controller" >"$DIR/controller-port"
    done
    {
        settings
        echo "listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller"
        echo "advertised.listeners=PLAINTEXT://127.0.0.1:$port"
        echo "controller.quorum.voters=1@127.0.0.1:$controller"
        echo "log.dirs=$DIR/data"
    } >"$CONFIG"
}

# java_for_kafka HEAP_MB CLASS ARGUMENT…
java_for_kafka() {
    local heap=$1
    shift
    "$JAVA" "-Xmx${heap}m" "-Xms${heap}m" -XX:+ExitOnOutOfMemoryError -Djava.awt.headless=true \
        "-Dlog4j2.configurationFile=$HERE/kafka-log.properties" -cp "$DIR/libs/*" "$@"
}

format_storage() {
    local id
    [ ! -s "$DIR/data/meta.properties" ] || return 0
    id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | cut -c1-22)
    java_for_kafka 128 kafka.tools.StorageTool format --cluster-id "$id" --config "$CONFIG" >"$LOG" 2>&1 ||
        die 3 "the data directory cannot be made: $(tail -n 1 "$LOG")"
}

broker_pid() { cat "$DIR/pid" 2>/dev/null || true; }

jars_run() { running "$(broker_pid)" "$CONFIG"; }

jars_wait() {
    local n
    for n in $(seq 1 $((PATIENCE * 10))); do
        jars_run || return 1
        if grep -q "$READY" "$LOG" && listening "$(cat "$DIR/port")"; then return 0; fi
        sleep 0.1
    done
    say "it is not ready after $((n / 10)) s"
    return 1
}

jars_launch() {
    configure
    format_storage
    # A session of its own, so that an interrupt at the terminal ends the command and not the broker.
    local session=""
    if have setsid; then session=setsid; fi
    : >"$LOG"
    nohup $session "$JAVA" -Xmx512m -Xms256m -XX:TieredStopAtLevel=1 -XX:+UseG1GC -XX:+ExitOnOutOfMemoryError -Djava.awt.headless=true \
        "-Dlog4j2.configurationFile=$HERE/kafka-log.properties" -cp "$DIR/libs/*" kafka.Kafka "$CONFIG" \
        >>"$LOG" 2>&1 </dev/null 9>&- &
    echo $! >"$DIR/pid"
    jars_wait
}

jars_start() {
    local try
    JAVA=$(find_java)
    fetch_jars
    for try in 1 2 3; do
        if jars_launch; then return; fi
        say "it did not start (try $try): $(grep -m1 -E 'ERROR|FATAL|Exception' "$LOG" || tail -n 1 "$LOG")"
        jars_end KILL
        # Somebody may have taken a port since we looked; the data are kept.
        if grep -q 'Address already in use' "$LOG"; then rm -f "$DIR/port" "$DIR/controller-port"; fi
    done
    die 3 "Kafka does not start: see $LOG"
}

# jars_end SIGNAL
jars_end() {
    local pid
    pid=$(broker_pid)
    if running "$pid" "$CONFIG"; then
        kill -s "$1" "$pid"
        if ! ended "$pid" "$CONFIG" 30; then
            kill -s KILL "$pid"
            ended "$pid" "$CONFIG" 10
        fi
        until_silent "$(cat "$DIR/port")"
    fi
    rm -f "$DIR/pid"
}

# until_silent PORT: a killed broker's listener outlives its command line by a moment; who starts again within it would find the
# port taken and move to another, where no client looks.
until_silent() {
    local n
    for n in $(seq 1 50); do
        listening "$1" || return 0
        sleep 0.1
    done
}

# ---- by container -------------------------------------------------------------------------------------------------

find_engine() {
    local engine
    for engine in docker podman; do
        if have "$engine" && timeout 10 "$engine" info >/dev/null 2>&1; then
            echo "$engine"
            return
        fi
    done
}

in_engine() { "$ENGINE" "$@" </dev/null 9>&-; }

container_runs() {
    [ -n "$ENGINE" ] && [ "$(in_engine inspect -f '{{.State.Running}}' "$CONTAINER" 2>/dev/null)" = true ]
}

container_exists() { in_engine inspect "$CONTAINER" >/dev/null 2>&1; }

# Exists since when: the log of a container that was started again still holds the line of last time.
container_wait() {
    local n
    for n in $(seq 1 $((PATIENCE * 2))); do
        container_runs || return 1
        if in_engine logs --since "$1" "$CONTAINER" 2>&1 | grep -q "$READY" && listening "$(cat "$DIR/port")"; then return 0; fi
        sleep 0.5
    done
    say "the container is not ready after $((n / 2)) s"
    return 1
}

container_make() {
    local port line name variables=()
    port=$(remembered_port "$DIR/port")
    while IFS= read -r line; do
        name=$(printf '%s' "${line%%=*}" | tr 'a-z.' 'A-Z_')
        variables+=(-e "KAFKA_$name=${line#*=}")
    done < <(
        settings
        echo "listeners=PLAINTEXT://:$port,CONTROLLER://:9093"
        echo "advertised.listeners=PLAINTEXT://127.0.0.1:$port"
        echo "controller.quorum.voters=1@localhost:9093"
        echo "heap.opts=-Xmx512m -Xms256m"
    )
    say "making container $CONTAINER from apache/kafka:$(version) with $ENGINE"
    in_engine run -d --name "$CONTAINER" -p "127.0.0.1:$port:$port" "${variables[@]}" \
        "docker.io/apache/kafka:$(version)" >/dev/null
}

container_start() {
    local since
    since=$(date +%s)
    if container_exists; then in_engine start "$CONTAINER" >/dev/null; else container_make; fi && container_wait "$since"
}

# ---- commands -----------------------------------------------------------------------------------------------------

start() {
    mkdir -p "$DIR"
    if jars_run || container_runs; then return; fi
    # A checkout stays with what its data are in.
    if [ -n "$ENGINE" ] && [ "$WAY" != jars ] && [ ! -d "$DIR/data" ]; then
        if container_start; then return; fi
        [ "$WAY" != container ] || die 3 "the container does not start: $ENGINE logs $CONTAINER"
        say "the container does not start; taking the jars instead"
        in_engine rm -f "$CONTAINER" >/dev/null 2>&1 || true
    fi
    [ "$WAY" != container ] || die 3 "no container engine answers"
    jars_start
}

stop() {
    if container_runs; then
        in_engine stop -t 30 "$CONTAINER" >/dev/null
    elif jars_run; then
        jars_end TERM
    else
        say "does not run"
        return
    fi
    say "stopped"
}

crash() {
    if container_runs; then in_engine kill "$CONTAINER" >/dev/null; else jars_end KILL; fi
}

main() {
    case "${1:-}" in
    start | stop | kill | restart | bootstrap) ;;
    *) die 2 "usage: kafka.sh start|stop|kill|restart [kill]|bootstrap" ;;
    esac
    if [ -n "${KAFKA_BOOTSTRAP:-}" ]; then
        case "$1" in
        start | bootstrap) echo "$KAFKA_BOOTSTRAP" ;;
        *) die 2 "KAFKA_BOOTSTRAP is set: that broker is not ours to $1" ;;
        esac
        return
    fi
    lock kafka
    WAY=${KAFKA_FROM:-}
    ENGINE=""
    if [ "$WAY" != jars ]; then ENGINE=$(find_engine); fi
    case "$1" in
    start)
        start
        address
        ;;
    stop) stop ;;
    kill) crash ;;
    restart)
        if [ "${2:-}" = kill ]; then crash; else stop; fi
        start
        address
        ;;
    bootstrap) if jars_run || container_runs; then address; else die 3 "does not run: deploy/local/kafka.sh start"; fi ;;
    esac
}

main "$@"
