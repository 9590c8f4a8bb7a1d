"""The settings of a name server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sprocket.auth.first_users import JSON_KEYS, JSON_USER, keys_form, user_form
from sprocket.base import setting_forms as forms
from sprocket.base.config import Conflict, setting
from sprocket.quotas.rules import quotas


@dataclass(frozen=True, slots=True)
class NameServerConfig:
    """Settings of a name server. Times in milliseconds, sizes in bytes."""

    host: str = setting(
        "127.0.0.1",
        "Address to listen at; 0.0.0.0 or :: opens it to other machines.",
        rocketmq="bindAddress",
        form=forms.host,
    )
    port: int = setting(
        9876,
        "TCP port to listen at; 0 takes a free one.",
        rocketmq="listenPort",
        minimum=0,
        maximum=65535,
    )
    kv_path: str | None = setting(
        None,
        "File of the key-value settings; without one they are lost when the name server stops.",
        rocketmq="kvConfigPath",
        form=forms.folder,
    )
    connections_max: int = setting(
        0,
        "The most connections at the same time; further ones are refused. 0: a quarter of the "
        "files that the process may have open (ulimit -n).",
        minimum=0,
        maximum=1_000_000,
    )
    broker_expiry_ms: int = setting(
        120_000,
        "A broker that sends no heartbeat or registration for so long is removed from the routes, "
        "unless it sent its own timeout.",
        minimum=1_000,
    )
    scan_ms: int = setting(
        5_000,
        "Pause between two scans for silent brokers.",
        rocketmq="scanNotActiveBrokerInterval",
        minimum=10,
    )
    order_conf_in_routes: bool = setting(
        False,
        "Whether a route contains the topic's order configuration.",
        rocketmq="orderMessageEnable",
    )
    order_conf_to_brokers: bool = setting(
        True,
        "Whether the reply to a broker's registration contains the order configuration of all "
        "topics.",
        rocketmq="returnOrderTopicConfigToBroker",
    )
    topics_absent_are_deleted: bool = setting(
        False,
        "Whether a registration removes the broker's topics that it does not list.",
        rocketmq="deleteTopicWithBrokerRegistration",
    )
    topic_lists: bool = setting(
        True,
        "Whether clients may list the topics of a cluster or unit.",
        rocketmq="enableTopicList",
    )
    all_topics_list: bool = setting(
        True,
        "Whether clients may list all topics.",
        rocketmq="enableAllTopicList",
    )
    acting_masters: bool = setting(
        False,
        "Whether routes show the slave with the smallest number as the master while there is none, "
        "if the broker allows that; topics can only be read there then.",
        rocketmq="supportActingMaster",
    )
    notify_smallest: bool = setting(
        False,
        "Whether the processes of a broker are notified when another one has the smallest number.",
        rocketmq="notifyMinBrokerIdChanged",
    )
    authentication: bool = setting(
        False, "Whether each request must be signed with the keys of a user of this name server."
    )
    authorization: bool = setting(
        False, "Whether the user must have the rights that its request needs."
    )
    accounts_path: str | None = setting(
        None,
        "File of the users and their policies, of the form of a broker's accounts.json; without "
        "one, those that were made by requests are lost when the name server stops.",
        form=forms.folder,
    )
    first_user: str | None = setting(
        None,
        f"A super user that is made at the start if there is none of its name: {JSON_USER}.",
        form=user_form,
        is_secret=True,
    )
    inner_keys: str | None = setting(
        None,
        f"Keys with which notices to brokers are signed: {JSON_KEYS}. They belong to a super "
        "user, which is made at the start if there is none; brokers register with its keys.",
        form=keys_form,
        is_secret=True,
    )
    cluster: str = setting(
        "DefaultCluster",
        "The cluster to which users need rights for what concerns all topics.",
        form=forms.name,
    )
    topics_max: int = setting(200_000, "Topics at most.", minimum=1)
    brokers_max: int = setting(10_000, "Broker processes at most.", minimum=1)
    kv_entries_max: int = setting(100_000, "Key-value settings at most.", minimum=1)
    quotas: tuple[str, ...] = setting(
        (),
        "What an address or connection may take: rules such as `ip * requests=200 connections=50`.",
        form=quotas,
    )
    frame_bytes_max: int = setting(
        16 << 20, "Largest request that is accepted.", minimum=1 << 16, maximum=1 << 30
    )
    unfinished_bytes_max: int = setting(
        128 << 20,
        "Bytes of incomplete requests over all connections, at most; above it those that have been "
        "incomplete for longest are closed. One request may always be as large as frame_bytes_max.",
        minimum=1 << 20,
    )
    drain_ms: int = setting(
        3_000, "How long requests in flight may take when the name server stops.", minimum=0
    )

    def conflicts(self) -> Iterator[Conflict]:
        """What is wrong with the settings together."""
        if self.authorization and not self.authentication:
            yield Conflict(
                ("authorization", "authentication"),
                "needs nameserver.authentication: the rights of a user who need not prove to be it "
                "protect nothing",
            )
