/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packets.cpp - messages as packets of ns-3.
 *
 * What an RDMA fabric does is modelled by the TCP of ns-3 without what makes
 * TCP slow: connections are open before the clock starts, the congestion
 * window starts beyond the receiver's, queues hold whatever comes, so nothing
 * is lost, and one acknowledgement stands for several packets.  What is left is
 * a fixed window per connection, clocked by acknowledgements; NICs that take a
 * packet of each connection in turn; and FIFO ports of a switch that stores and
 * forwards, acknowledgements first.
 */
#include "compare.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>
#include <string>
#include <utility>

using namespace ns3;

namespace
{

/* Everything is connected by then; the clock of the result starts here. */
const Time begin = MilliSeconds(1);

constexpr uint16_t port = 1;

/* All messages from one device to another, one after the other. */
struct connection {
    Ptr<Socket> out;
    std::vector<unsigned> messages; /* as sent */
    uint64_t unsent = 0;            /* bytes that the socket did not take yet */
    uint64_t arrived = 0;           /* bytes of the message now arriving */
    size_t next = 0;                /* its place in `messages` */
};

class fabric
{
  public:
    fabric(const star &s, uint64_t window, std::vector<message> &m);
    packet_run run();

  private:
    void link(const star &s);
    void watch(const QueueDiscContainer &queues);
    void listen();
    void connect();
    void open(connection *c, Address to);
    void greet(connection *c);
    void send(unsigned i);
    void feed(connection *c);
    void accept(Ptr<Socket> socket, const Address &from);
    void take(connection *c, Ptr<Socket> socket);

    std::vector<message> &messages;
    std::vector<std::vector<unsigned>> released; /* [messages] by each */
    std::map<std::pair<unsigned, unsigned>, connection> connections;
    NodeContainer hosts, hub;
    std::vector<Ipv4Address> address;
    std::map<Ipv4Address, unsigned> owner;
    packet_run result = {};
};

void settings(uint64_t window)
{
    Time::SetResolution(Time::PS);
    auto tcp = [](const char *name, const AttributeValue &v) {
        Config::SetDefault(std::string("ns3::TcpSocket::") + name, v);
    };
    tcp("SegmentSize", UintegerValue(payload));
    tcp("InitialCwnd", UintegerValue(1 << 16));
    tcp("RcvBufSize", UintegerValue(window));
    tcp("SndBufSize", UintegerValue(2 * window));
    tcp("TcpNoDelay", BooleanValue(true));
    tcp("DelAckCount", UintegerValue(8));
    tcp("DelAckTimeout", TimeValue(MicroSeconds(10)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
}

fabric::fabric(const star &s, uint64_t window, std::vector<message> &m)
    : messages(m), released(m.size())
{
    settings(window);
    link(s);
    for (unsigned i = 0; i < m.size(); i++)
        if (m[i].after != nothing) released[(size_t)m[i].after].push_back(i);
    for (const message &x : m) connections[{x.from, x.to}];
    listen();
    connect();
}

void fabric::link(const star &s)
{
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate",
                            DataRateValue((uint64_t)(s.bandwidth * 8)));
    wire.SetDeviceAttribute("Mtu", UintegerValue(payload + headers - 2));
    wire.SetChannelAttribute("Delay", TimeValue(Seconds(s.latency)));
    /* What waits, waits in the queue before the device's own. */
    wire.SetQueue("ns3::DropTailQueue", "MaxSize",
                  QueueSizeValue(QueueSize("2p")));
    hosts.Create(s.devices);
    hub.Create(1);
    InternetStackHelper stack;
    stack.Install(hosts);
    stack.Install(hub);
    const QueueSizeValue endless(QueueSize("100000000p"));
    TrafficControlHelper round_robin, first_in_first_out;
    /* CoDel, which would drop what waits too long, never becomes active. */
    round_robin.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", endless,
                                 "Target", StringValue("1000s"), "Interval",
                                 StringValue("1000s"));
    first_in_first_out.SetRootQueueDisc("ns3::PfifoFastQueueDisc", "MaxSize",
                                        endless);
    Ipv4AddressHelper range("10.0.0.0", "255.255.255.0");
    for (unsigned i = 0; i < s.devices; i++) {
        const auto ends = wire.Install(hosts.Get(i), hub.Get(0));
        watch(round_robin.Install(ends.Get(0)));
        watch(first_in_first_out.Install(ends.Get(1)));
        address.push_back(range.Assign(ends).GetAddress(0));
        owner[address.back()] = i;
        range.NewNetwork();
        ends.Get(1)->TraceConnectWithoutContext(
            "MacTx", Callback<void, Ptr<const Packet>>(
                         [this](Ptr<const Packet>) { result.packets++; }));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
}

void fabric::watch(const QueueDiscContainer &queues)
{
    queues.Get(0)->TraceConnectWithoutContext(
        "Drop", Callback<void, Ptr<const QueueDiscItem>>(
                    [this](Ptr<const QueueDiscItem>) { result.lost++; }));
}

void fabric::listen()
{
    for (unsigned i = 0; i < hosts.GetN(); i++) {
        auto socket =
            Socket::CreateSocket(hosts.Get(i), TcpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        socket->Listen();
        socket->SetAcceptCallback(
            MakeNullCallback<bool, Ptr<Socket>, const Address &>(),
            MakeCallback(&fabric::accept, this));
    }
}

void fabric::connect()
{
    for (auto &[ends, c] : connections) {
        c.out = Socket::CreateSocket(hosts.Get(ends.first),
                                     TcpSocketFactory::GetTypeId());
        connection *self = &c;
        c.out->SetSendCallback(Callback<void, Ptr<Socket>, uint32_t>(
            [this, self](Ptr<Socket>, uint32_t) { feed(self); }));
        const Address to = InetSocketAddress(address[ends.second], port);
        Simulator::Schedule(begin / 4, &fabric::open, this, self, to);
        Simulator::Schedule(begin / 2, &fabric::greet, this, self);
    }
    for (unsigned i = 0; i < messages.size(); i++)
        if (messages[i].after == nothing)
            Simulator::Schedule(begin, &fabric::send, this, i);
}

void fabric::open(connection *c, Address to)
{
    if (c->out->Connect(to) != 0) std::abort();
}

/* The windows that open a connection are cut to 64 KiB; an acknowledgement of
 * something says the whole. */
void fabric::greet(connection *c)
{
    if (c->out->Send(Create<Packet>(1)) != 1) std::abort();
}

void fabric::send(unsigned i)
{
    connection &c = connections.at({messages[i].from, messages[i].to});
    c.messages.push_back(i);
    c.unsent += messages[i].bytes;
    feed(&c);
}

void fabric::feed(connection *c)
{
    while (c->unsent != 0) {
        const uint64_t room = c->out->GetTxAvailable();
        const auto part = (uint32_t)std::min(c->unsent, room);
        if (part == 0) return;
        if (c->out->Send(Create<Packet>(part)) != (int)part) std::abort();
        c->unsent -= part;
    }
}

void fabric::accept(Ptr<Socket> socket, const Address &from)
{
    /* It only sends acknowledgements. */
    socket->SetIpTos(0x10); /* low delay: the first band of a port */
    Address here;
    socket->GetSockName(here);
    const unsigned source =
        owner.at(InetSocketAddress::ConvertFrom(from).GetIpv4());
    const unsigned target =
        owner.at(InetSocketAddress::ConvertFrom(here).GetIpv4());
    connection *c = &connections.at({source, target});
    socket->SetRecvCallback(
        Callback<void, Ptr<Socket>>([this, c](Ptr<Socket> s) { take(c, s); }));
}

void fabric::take(connection *c, Ptr<Socket> socket)
{
    while (Ptr<Packet> p = socket->Recv()) c->arrived += p->GetSize();
    if (Simulator::Now() < begin) c->arrived = 0;
    while (c->next < c->messages.size()) {
        const unsigned i = c->messages[c->next];
        if (c->arrived < messages[i].bytes) return;
        c->arrived -= messages[i].bytes;
        c->next++;
        messages[i].ended = (Simulator::Now() - begin).GetSeconds();
        for (const unsigned k : released[i]) send(k);
    }
}

packet_run fabric::run()
{
    Simulator::Run();
    for (const auto &[ends, c] : connections)
        if (c.next != c.messages.size() || c.unsent != 0) result.lost++;
    Simulator::Destroy();
    return result;
}

} /* namespace */

packet_run run_packets(const star &s, uint64_t window,
                       std::vector<message> &messages)
{
    return fabric(s, window, messages).run();
}
