package threat

// guardsListeners is all that listens below 1024 in a room.
const guardsListeners = "tcp:531,tcp:533,tcp:534,tcp:535,tcp:536,udp:531"

// roomTries turn against the room and the guard themselves.
var roomTries = []Try{
	{ID: "listeners", Items: "D4 S1", Lines: []string{"listening above=1024"}, Raw: true, Sees: guardsListeners, Families: Neither, Control: ours},
	{ID: "abstract-sockets", Items: "S2", Lines: []string{"abstract"}, Raw: true, Sees: "none", Families: Neither, Control: ours},
	{ID: "guards-ports", Items: "S3 L7", Lines: []string{"bind tcp {any}:531", "bind udp {any}:531", "bind tcp {any}:533", "bind tcp {any}:534", "bind tcp {any}:535", "bind tcp {any}:536", "bind tcp {lh}:534", "bind udp {lh}:531"},
		Sees: "EACCES", Default: "EADDRINUSE", Control: ours},
	{ID: "guards-ports-shared", Items: "S3 L7", Lines: []string{"share tcp {any}:534", "share tcp {lh}:533", "share tcp {lh}:536", "share udp {any}:531", "share udp {lh}:531"}, Raw: true,
		Sees: "EACCES", Default: "EADDRINUSE", Control: ours},
	{ID: "transparent-ports", Items: "S1 P3", Lines: []string{"connect {lh}:531", "connect {lh}:533", "connect {lh}:534", "connect {lh}:535"}, Sees: refused, Control: ours},
	{ID: "transparent-port-dns", Items: "S1 D1", Lines: []string{"dns {lh}:531 {name} A"}, Sees: "EHOSTUNREACH|EACCES", Control: ours},
	{ID: "loopback-web", Items: "S1 P3", Lines: []string{"connect {lh}:80", "connect {lh}:443", "connect {lh}:22"}, Sees: refused, Control: ours},
	{ID: "unspecified-address", Items: "S1 P3", Lines: []string{"connect {any}:534", "connect {any}:535", "connect {any}:9000"}, Sees: refused, Control: ours},
	{ID: "low-ports", Items: "S3 D1", Lines: []string{"bind udp {any}:53", "bind tcp {any}:53", "bind tcp {any}:443"}, Sees: "EACCES", Default: "ok", Control: ours},
	{ID: "rules", Items: "L2 L3 S7", Lines: []string{"rules flush", "rules add"}, Sees: "EPERM", Families: Neither, Control: rights},
	{ID: "routes", Items: "T1 S7", Lines: []string{"route add 198.51.100.0/24", "route del default", "address add 198.51.100.66/32", "link down lo", "link add x0"}, Sees: "EPERM|EOPNOTSUPP", Families: Neither, Control: rights},
	{ID: "routes-6", Items: "T1 S7", Lines: []string{"route add 2001:db8:1::/48", "address add 2001:db8:1::66/128"}, Sees: "EPERM", Families: Neither, Control: rights},
	{ID: "netfilter-sockets", Items: "L5 L10", Lines: []string{"netfilter nflog", "netfilter queue", "netfilter flows", "netfilter forget"}, Raw: true, Sees: "EPERM", Families: Neither, Control: rights},
	{ID: "guards-sockets-destroyed", Items: "S1 L7", Lines: []string{"destroy 0.0.0.0:534", "destroy [::]:534"}, Raw: true, Sees: "EPERM|EACCES|EOPNOTSUPP", Families: Neither, Control: rights},
	{ID: "sysctl", Items: "S3 T3", Lines: []string{
		"write /proc/sys/net/ipv4/ip_unprivileged_port_start text=0", `write /proc/sys/net/ipv4/ping_group_range text="0 2000"`, "write /proc/sys/net/ipv4/ip_forward text=1",
		"write /proc/sys/net/ipv4/conf/all/accept_source_route text=1", "write /proc/sys/net/ipv4/conf/lo/route_localnet text=1",
	}, Sees: "EROFS|EACCES|EPERM", Families: Neither, Control: rights},
	{ID: "user-namespace", Items: "S7 T4", Lines: []string{"userns rules flush", "userns route del default", "userns icmp 198.51.100.66 raw=1", "userns bind tcp 127.0.0.1:1000"},
		Raw: true, Sees: "EPERM|EACCES|ENOSPC|EINVAL", Families: Neither, Control: rights},
	{ID: "namespaces", Items: "S7", Lines: []string{"namespace net", "namespace mnt", "syscall setns", "syscall bpf", "syscall mount"}, Sees: "EPERM|EBADF|EINVAL", Root: "EPERM|EBADF|EINVAL|EFAULT", Default: "EPERM|EBADF|EINVAL|EFAULT", Families: Neither, Place: Engines, Control: Control{None: "TestB02_NoNewPrivilegesAndSeccomp has it"}},
	{ID: "control-sockets", Items: "S1", Lines: []string{"list /run/workshop", "list /run/guard", "read /var/run/docker.sock", "read /run/docker.sock"}, Sees: "ENOENT|empty", Families: Neither, Place: Engines, Control: ours},
	{ID: "guards-processes", Items: "S7", Lines: []string{"status Uid {guardpid}", "status Uid {roompid}"}, Sees: "ENOENT", Families: Neither, Place: Engines, Control: ours},
	{ID: "hosts-file", Items: "D12 S4", Lines: []string{`write /etc/hosts text="198.51.100.66 allowed.example.org\n"`, `write /etc/resolv.conf text="nameserver 198.51.100.66\n"`},
		Sees: "EROFS|EACCES|EPERM", Root: "ok", Default: "ok", Families: Neither, Place: Engines, Control: ours},
	{ID: "hosts-file-used", Items: "D12 S4", Lines: []string{"http http://allowed.example.org/ connect=198.51.100.66:80"}, Sees: "200", Families: Neither, Control: ours},
	{ID: "own-servers", Items: "S1 T1", Lines: []string{"loop {lh}:0", "loop {lh}:8081"}, Sees: "ok",
		Control: Control{None: "this is a control itself: loopback of both families works for the worker's own servers"}},
	{ID: "allowed", Items: "P1", Lines: []string{"http https://allowed.example.org/ ca={ca} connect={ok}:443", "http http://allowed.example.org/ connect={ok}:80"}, Sees: "200",
		Control: Control{None: "this is the control of all others: what is allowed works for every identity"}},
}
