"""Every command of RocketMQ's admin tool 5.3.3, with words that it can be run with.

The runs are in an order in which each finds what it needs. Words in braces are places of the world
of `test_java_every_command`. Where a command is refused, its reason comes from the server's answer.
"""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """One run of a command.

    Attributes:
        words: the command and its arguments.
        prints: what it must print, a regular expression; where it is refused, part of the reason.
        is_refused: whether it fails, with one reason that a server gave.
        ours: the command of Sprocket's for the same, if there is one.
        note: what a user should know; the reason, where the command gives none itself.
        is_endless: whether the tool goes on until it is interrupted.
        is_local: whether it reads files and asks no server.
        knows_names: whether the name server is named to it.
    """

    words: str
    prints: str
    is_refused: bool = False
    ours: str = ""
    note: str = ""
    is_endless: bool = False
    is_local: bool = False
    knows_names: bool = True

    @property
    def command(self) -> str:
        """The command's name."""
        return self.words.split()[0]


def refused(words: str, reason: str, ours: str = "", note: str = "") -> Case:
    """A run that a server refuses."""
    return Case(words, reason, is_refused=True, ours=ours, note=note)


_CONTROLLED = "at RocketMQ's controller"
_TIMED = "`sprocket send --json` in a loop"
_GROUP = "-bn broker-g -c Grouped"

#: What groups elect by, RocketMQ's controller, and a broker with a group.
CASES: tuple[Case, ...] = (
    # Topics.
    Case(
        "updateTopic -b {broker} -t T -r 2 -w 2", "create topic to .* success", ours="topic create"
    ),
    Case("updateTopicList -b {broker} -f {folder}/topics.json", "success", ours="topic create"),
    Case("updateTopicPerm -b {broker} -t Listed -p 4", "from 6 to 4", ours="topic update"),
    Case("topicList -c", r"DefaultCluster +T +G\b", ours="topic list"),
    Case("topicRoute -t T", '"brokerAddrs":{0:"{broker}"', ours="topic route"),
    Case("topicStatus -t T", r"broker-a +1 +0 +5 ", ours="topic status"),
    Case("topicClusterList -t T", "DefaultCluster", ours="topic route"),
    Case("updateOrderConf -t T -m put -v broker-a:2", "success", ours=""),
    Case("allocateMQ -t T -i 10.0.0.1,10.0.0.2", '"10.0.0.1":', ours="group lag --owners"),
    Case("statsAll -t T", r"\nT +G +", ours="topic volume"),
    Case(
        "updateStaticTopic -b broker-a -t Static -qn 2",
        "new mapping data is written",
        ours="statictopic create",
    ),
    Case(
        "remappingStaticTopic -b broker-g -t Static",
        "data is written to file",
        ours="statictopic move",
    ),
    # Messages.
    Case("sendMessage -t T -p text -b broker-a -i 0 -m true", "SEND_OK", ours="send"),
    Case("sendMsgStatus -b broker-a -s 10 -c 2", "SEND_OK(?s:.*)SEND_OK", ours="send"),
    Case("checkMsgSendRT -t T -a 2 -s 10", "true", ours=_TIMED),
    Case(
        "clusterRT -a 2 -s 10 -i 60 -c DefaultCluster",
        r"DefaultCluster +broker-a +[\d.]+ +2 +0",
        ours=_TIMED,
        is_endless=True,
        note="goes on until it is interrupted",
    ),
    Case("queryMsgById -t T -i {offset}", r"Keys: +\[key-1\]", ours="message show"),
    Case("queryMsgByKey -t T -k key-1", "{message}", ours="message find"),
    Case("queryMsgByUniqueKey -t T -i {message}", "{offset}|Keys: +", ours="message show --topic"),
    Case("queryMsgByOffset -t T -b broker-a -i 0 -o 0", "{offset}", ours="message show"),
    Case(
        "queryMsgTraceById -i {traced}",
        "#Type(?s:.*)Pub",
        ours="`sprocket consume RMQ_SYS_TRACE_TOPIC`",
    ),
    Case("printMsg -t T -d true", "BODY: first", ours="consume"),
    Case("printMsgByQueue -t T -a broker-a -i 1 -p true", "MSGID: ", ours="consume"),
    Case("consumeMessage -t T -b broker-a -i 0 -o 0 -c 1", "MSGID: ", ours="consume --count"),
    Case(
        "queryCq -b {broker} -t T -q 1 -i 2 -c 2 -g G",
        r"physicOffset=\d+, physicSize=\d+",
        ours="store dump",
    ),
    # Groups.
    Case("updateSubGroup -b {broker} -g Made -r 5", "retryMaxTimes=5", ours="group create"),
    Case("updateSubGroupList -b {broker} -f {folder}/groups.json", "success", ours="group create"),
    Case("getConsumerConfig -g Made", r"retryMaxTimes += +5", ours="group show"),
    Case(
        "setConsumeMode -b {broker} -t T -g G -m POP -q 0",
        r"consume mode\[POP\]",
        ours="group mode",
    ),
    Case("setConsumeMode -b {broker} -t T -g G -m PULL", r"consume mode\[PULL\]"),
    Case("consumerProgress -g G", r"T +broker-a +1 +6 +6 +0", ours="group lag"),
    Case(
        "consumerStatus -g G -i {member}",
        "#Consumer MQ Detail|Consumer Properties",
        ours="group running",
    ),
    Case("consumerConnection -g G", "PYTHON", ours="group members"),
    Case("producerConnection -g P -t T", "PYTHON", ours="group producers"),
    Case("producer -b {broker}", r"producer group \(P\)", ours="group producers"),
    Case("brokerConsumeStats -b {broker}", r"T +G +broker-a +1 +6 +6 +0", ours="group lag"),
    Case("cloneGroupOffset -s G -d Cloned -t T", "success", ours="group clone"),
    Case("skipAccumulatedMessage -g Cloned -t T", r"broker-a +1 +6", ours="group reset --to last"),
    Case("resetOffsetByTime -g Cloned -t T -s 0", r"broker-a +1 +0", ours="group reset --to"),
    Case("deleteSubGroup -b {broker} -g Cloned -r true", "success", ours="group delete"),
    # Brokers and name servers.
    Case("clusterList -m", r"DefaultCluster +broker-a +\d+ +\d+", ours="cluster"),
    Case("brokerStatus -b {broker}", "brokerActive +: true", ours="cluster status"),
    Case("getBrokerConfig -b {broker}", "brokerName += +broker-a", ours="config get"),
    Case(
        "updateBrokerConfig -b {broker} -k fileReservedTime -v 48",
        "success",
        ours="config set",
        note="[what can be changed](operating.md#settings-that-change-while-a-server-runs)",
    ),
    Case("wipeWritePerm -b broker-a", " OK, ", ours="`sprocket config set brokerPermission=4`"),
    Case("addWritePerm -b broker-a", " OK, ", ours="`sprocket config set brokerPermission=6`"),
    Case("getNamesrvConfig", "listenPort += +", ours="config get --of-nameservers"),
    Case(
        "updateNamesrvConfig -k orderMessageEnable -v true",
        "success",
        ours="config set --of-nameservers",
    ),
    Case("updateKvConfig -s Space -k colour -v red", "success"),
    Case("deleteKvConfig -s Space -k colour", "success"),
    Case("cleanUnusedTopic -b {broker}", "success"),
    Case(
        "cleanExpiredCQ -b {broker}",
        "success",
        note="nothing is left to do: entries of queues go with the log's files",
    ),
    Case(
        "deleteExpiredCommitLog -b {broker}",
        "success",
        note="expired files go at once, whatever `deleteWhen` says",
    ),
    Case(
        "setCommitLogReadAheadMode -b {broker} -m 1",
        "readahead mode success, mode: 1",
        ours="`sprocket config set dataReadAheadEnable=false`",
    ),
    Case("setCommitLogReadAheadMode -b {broker} -m 0", "readahead mode success, mode: 0"),
    Case("exportConfigs -c DefaultCluster -f {folder}", "success", ours="config get --json"),
    Case("exportMetadata -c DefaultCluster -f {folder}", "success", ours="topic list --json"),
    Case("exportMetrics -c DefaultCluster -f {folder}", "success", ours="[metrics](metrics.md)"),
    Case("startMonitoring", "^$", ours="[metrics](metrics.md)", note="goes on until it is ended"),
    Case(
        "exportPopRecord -b {broker} -d false",
        "Export broker records, brokerName=broker-a",
        note="nothing is left to do: records of pop are in the log",
    ),
    # Users.
    Case("createUser -b {broker} -u annette -p secret12 -t Normal", "success", ours="user create"),
    Case("updateUser -b {broker} -u annette -p secret34", "success", ours="user update"),
    Case("getUser -b {broker} -u annette", "annette +null +Normal +enable", ours="user show"),
    Case("listUser -b {broker}", "annette", ours="user list"),
    refused(
        "copyUser -f {broker} -t {leader} -u annette",
        "only they can copy users",
        ours="user create",
    ),
    Case("createUser -b {leader} -u annette -p secret12 -t Normal", "success"),
    Case(
        "createAcl -b {broker} -s User:annette -r Topic:T -a Pub -d Allow",
        "success",
        ours="acl grant",
    ),
    Case(
        "updateAcl -b {broker} -s User:annette -r Topic:T -a Pub,Sub -d Allow",
        "success",
        ours="acl grant",
    ),
    Case("getAcl -b {broker} -s User:annette", r"\[Pub, Sub\]", ours="acl show"),
    Case("listAcl -b {broker}", "User:annette", ours="acl list"),
    Case(
        "copyAcl -f {broker} -t {leader} -s User:annette",
        "success",
        note="the user must exist there",
    ),
    Case("deleteAcl -b {broker} -s User:annette -r Topic:T", "success", ours="acl revoke"),
    Case("deleteUser -b {broker} -u annette", "success", ours="user delete"),
    # Copies of a broker.
    Case("haStatus -b {leader}", r"#SlaveNum\t1\n#InSyncSlaveNum\t1", ours="cluster members"),
    Case("haStatus -b {follower}", r"#LastReadTime\t2(?s:.*)#LastWriteTime\t2"),
    Case("getBrokerEpoch -b broker-g", r"#Epoch: EpochEntry", ours="cluster members"),
    refused("getBrokerEpoch -b broker-a", "only for controllerMode"),
    Case(
        "getSyncStateSet -a {controller} -b broker-g",
        r"InSyncReplica:(?s:.*)InSyncReplica:",
        ours="cluster status",
        note=_CONTROLLED,
    ),
    Case(
        "getControllerMetaData -a {controller}",
        r"#ControllerLeaderAddress\t{controller}",
        note=_CONTROLLED,
    ),
    Case("getControllerConfig -a {controller}", "controllerStorePath", note=_CONTROLLED),
    Case(
        "updateControllerConfig -a {controller} -k scanInactiveMasterInterval -v 900",
        "success",
        note=_CONTROLLED,
    ),
    Case(
        f"electMaster -a {{controller}} -b {{number}} {_GROUP}",
        r"#BrokerMasterAddr\t{follower}",
        ours="cluster elect",
        note=_CONTROLLED,
    ),
    Case(
        f"cleanBrokerMetadata -a {{controller}} -b {{number}} {_GROUP} -l",
        "success",
        note=_CONTROLLED,
    ),
    refused("resetMasterFlushOffset -b {follower} -o 0", "compares its log"),
    refused(
        "addBroker -c {broker} -b {folder}/broker.conf",
        "no container",
        ours="[`sprocket broker --processes`](processes.md)",
        note="works at a container",
    ),
    refused(
        "removeBroker -c {broker} -b DefaultCluster:broker-a:0",
        "no container",
        ours="[`sprocket broker --processes`](processes.md)",
        note="works at a container",
    ),
    # What RocketMQ's broker has and ours has not.
    refused("getColdDataFlowCtrInfo -b {broker}", "quotas", ours="config quotas"),
    refused("updateColdDataFlowCtrGroupConfig -b {broker} -g G -v 1024", "quotas"),
    refused("removeColdDataFlowCtrGroupConfig -b {broker} -g G", "quotas"),
    refused(
        "checkRocksdbCqWriteProgress -c DefaultCluster -t T", "store verify", ours="store verify"
    ),
    Case(
        "rocksDBConfigToJson -b {broker} -t topics",
        "JSON already",
        is_refused=True,
        ours="topic list --json",
        knows_names=False,
    ),
    Case(
        "exportMetadataInRocksDB -p {folder} -t topics -j true",
        "RocksDB load error",
        ours="topic list --json",
        is_local=True,
        note="reads RocksDB's files, and ours keeps none: `exportMetadata` asks the broker",
    ),
    Case(
        "dumpCompactionLog -f {log}",
        "MessageExt ",
        ours="store dump",
        is_local=True,
        note="reads a file of the log",
    ),
    Case("deleteTopic -c DefaultCluster -t Listed", "success", ours="topic delete"),
)

#: What a server of ours answers where RocketMQ's controller is meant.
AT_NAME_SERVER: tuple[Case, ...] = tuple(
    refused(words, "no controller")
    for words in (
        "getSyncStateSet -a {names} -b broker-g",
        "getControllerMetaData -a {names}",
        "getControllerConfig -a {names}",
        "updateControllerConfig -a {names} -k a -v b",
        f"electMaster -a {{names}} -b 1 {_GROUP}",
        f"cleanBrokerMetadata -a {{names}} {_GROUP}",
    )
)
