"""Configuration files as guides, images and RocketMQ itself have them, and what becomes of each.

They are written for these tests, in the style of the published ones: with their comments, blanks,
older names and mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Example(NamedTuple):
    """A file.

    Attributes:
        faults: parts of the lines with which it is refused, in their order; empty: it is taken.
        given: by `part.name`, values that it sets.
        notes: parts of its notes.
    """

    content: bytes
    faults: tuple[str, ...] = ()
    given: Mapping[str, object] = MappingProxyType({})
    notes: tuple[str, ...] = ()


_CLUSTER = """\
#所属集群名字
brokerClusterName=rocketmq-cluster
#broker名字，注意此处不同的配置文件填写的不一样
brokerName=broker-a
#0 表示 Master，>0 表示 Slave
brokerId={id}
#nameServer地址，分号分割
namesrvAddr=rocketmq-nameserver1:9876;rocketmq-nameserver2:9876
#在发送消息时，自动创建服务器不存在的topic，默认创建的队列数
defaultTopicQueueNums=4
autoCreateTopicEnable=true
autoCreateSubscriptionGroup=true
listenPort=10911
deleteWhen=04
#文件保留时间，默认 48 小时
fileReservedTime=120
mapedFileSizeCommitLog=1073741824
mapedFileSizeConsumeQueue=300000
destroyMapedFileIntervalForcibly=120000
redeleteHangedFileInterval=120000
diskMaxUsedSpaceRatio=88
storePathRootDir=/tmp/rocketmq/store
storePathCommitLog=/tmp/rocketmq/store/commitlog
storePathConsumeQueue=/tmp/rocketmq/store/consumequeue
storePathIndex=/tmp/rocketmq/store/index
storeCheckpoint=/tmp/rocketmq/store/checkpoint
abortFile=/tmp/rocketmq/store/abort
maxMessageSize=65536
flushCommitLogLeastPages=4
flushConsumeQueueLeastPages=2
flushCommitLogThoroughInterval=10000
flushConsumeQueueThoroughInterval=60000
brokerRole={role}
flushDiskType={flush}
checkTransactionMessageEnable=false
sendMessageThreadPoolNums=128
pullMessageThreadPoolNums=128
"""

EXAMPLES = {
    "single": Example(
        b"brokerClusterName = DefaultCluster\nbrokerName = broker-a\nbrokerId = 0\n"
        b"deleteWhen = 04\nfileReservedTime = 48\nbrokerRole = ASYNC_MASTER\n"
        b"flushDiskType = ASYNC_FLUSH\n",
        given={"broker.role": "ASYNC_MASTER", "store.kept_hours": 48},
    ),
    "2m-noslave, as most guides have it": Example(
        _CLUSTER.format(id=0, role="ASYNC_MASTER", flush="ASYNC_FLUSH").encode(),
        given={
            "broker.nameservers": ("rocketmq-nameserver1:9876", "rocketmq-nameserver2:9876"),
            "store.log_file_bytes": 1 << 30,
            "store.queue_file_bytes": 300_000,
            "store.message_bytes_max": 65_536,
        },
        notes=("abortFile (line 27)", "checkTransactionMessageEnable (line 35)", "until 4.5.1"),
    ),
    "the same with comments in GBK and CRLF": Example(
        _CLUSTER.format(id=0, role="ASYNC_MASTER", flush="ASYNC_FLUSH")
        .replace("\n", "\r\n")
        .encode("gbk"),
        given={"broker.name": "broker-a"},
    ),
    "the same with a byte order mark": Example(
        _CLUSTER.format(id=0, role="ASYNC_MASTER", flush="SYNC_FLUSH").encode("utf-8-sig"),
        given={"store.flush": "SYNC_FLUSH"},
    ),
    "2m-2s-sync, master": Example(
        _CLUSTER.format(id=0, role="SYNC_MASTER", flush="SYNC_FLUSH").encode(),
        given={"broker.role": "SYNC_MASTER", "store.flush": "SYNC_FLUSH"},
    ),
    "2m-2s-sync, slave": Example(
        _CLUSTER.format(id=1, role="SLAVE", flush="ASYNC_FLUSH").encode(),
        given={"broker.role": "SLAVE", "broker.id": 1},
    ),
    "a slave that is none": Example(
        _CLUSTER.format(id=1, role="ASYNC_MASTER", flush="ASYNC_FLUSH").encode(),
        faults=("broker.conf:6: broker.id (brokerId) is 1: only a slave",),
    ),
    "dledger": Example(
        b"brokerClusterName = RaftCluster\nbrokerName=RaftNode00\nlistenPort=30911\n"
        b"namesrvAddr=127.0.0.1:9876\nstorePathRootDir=/tmp/rmqstore/node00\n"
        b"storePathCommitLog=/tmp/rmqstore/node00/commitlog\nenableDLegerCommitLog=true\n"
        b"dLegerGroup=RaftNode00\ndLegerPeers=n0-127.0.0.1:40911;n1-127.0.0.1:40912\n"
        b"dLegerSelfId=n0\nsendMessageThreadPoolNums=16\n",
        faults=("broker.conf:7: 'enableDLegerCommitLog=true' asks for replication by DLedger",),
    ),
    "container": Example(
        b"#listen port\nlistenPort=10811\nnamesrvAddr=127.0.0.1:9876\n"
        b"fetchNamesrvAddrByAddressServer=false\nbrokerContainerIP=127.0.0.1\n"
        b"brokerConfigPaths=/root/broker-a.conf:/root/broker-b-s.conf\n",
        faults=("asks for brokers in a container",),
    ),
    "controller": Example(
        b"brokerName = broker-a\nbrokerId = -1\nbrokerRole = SLAVE\n"
        b"enableControllerMode = true\ncontrollerAddr = 127.0.0.1:9878\n",
        given={"broker.elector_place": "controller://127.0.0.1:9878", "broker.id": -1},
    ),
    "controller, with a role that counts": Example(
        b"brokerName = broker-a\nbrokerId = -1\nbrokerRole = SYNC_MASTER\n"
        b"enableControllerMode = true\ncontrollerAddr = 127.0.0.1:9878\n",
        given={"broker.elector_place": "controller://127.0.0.1:9878", "broker.id": -1},
    ),
    "docker, with the address to fill in": Example(
        "brokerName = broker-a\nbrokerId = 0 # 0表示 Master\nbrokerIP1 = 宿主机 IP\n"
        "namesrvAddr = nameSrvIP:Port\nbrokerRole = SYSC_MASTER\ndisk full\n".encode(),
        faults=(
            "a comment stands on a line of its own",
            "brokerIP1 (broker.advertised_host) is an IP address or the name of a host",
            "namesrvAddr (broker.nameservers) is host:port",
            "brokerRole (broker.role) is",
            "unknown setting 'disk'; the line has no `=`",
        ),
    ),
    "docker": Example(
        b"brokerClusterName=DefaultCluster\nbrokerName=broker-a\nbrokerIP1 =  192.168.92.177\n"
        b"namesrvAddr=namesrv:9876\ndiskMaxUsedSpaceRatio=100\nenablePropertyFilter=true\n"
        b"brokerEnableProxy=true\ndestroyMapedFileInterval=120000\n",
        given={"store.disk_used_percent": 95, "broker.advertised_host": "192.168.92.177"},
        notes=("diskMaxUsedSpaceRatio=100 counts as 95", "no release of RocketMQ reads it either"),
    ),
    "home and quotes": Example(
        b'storePathRootDir=~/store\nnamesrvAddr="a:9876"\nstorePathCommitLog=${user.home}/c\n',
        faults=("reads ~ as home", "namesrvAddr is written without quotes", "no variables"),
    ),
    "a licence as markup": Example(
        b"<!--\n  Licensed to whom it may concern\n\n  http://example.com/licence = 2\n-->\n"
        b"brokerName=broker-a\n",
        given={"broker.name": "broker-a"},
    ),
    "both spellings": Example(
        b"mapedFileSizeCommitLog=4096\nmappedFileSizeCommitLog=8192\nlistenPort=1\nlistenPort=2\n",
        given={"store.log_file_bytes": 8192, "broker.port": 2},
        notes=("set the same", "listenPort stands in line 3 too; the last one counts"),
    ),
    "both spellings, the older one last": Example(
        b"mappedFileSizeCommitLog=8192\nmapedFileSizeCommitLog=4096\n",
        given={"store.log_file_bytes": 8192},
    ),
}
