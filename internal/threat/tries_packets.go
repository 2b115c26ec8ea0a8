package threat

// transportTries make connections and datagrams that no line allows.
var transportTries = []Try{
	{ID: "tcp-port", Items: "T1 P1", Lines: []string{"connect {h}:9000"}, Sees: refused, Control: arrives, Event: "kernel"},
	{ID: "tcp-guards-numbers", Items: "P3", Lines: []string{"connect {h}:531", "connect {h}:534", "connect {h}:535"}, Sees: refused, Control: arrives, Event: "kernel"},
	{ID: "tcp-allowed-port-elsewhere", Items: "T6", Lines: []string{"tcp {h}:22"}, Sees: cut, Control: arrives, Event: "tcp"},
	{ID: "tcp-v4-mapped", Items: "T1 N9", Lines: []string{"dial [::ffff:{a}]:9000"}, Raw: true, Sees: refused, Families: OnlyV4, Control: arrives, Event: "kernel"},
	{ID: "tcp-multipath", Items: "T5", Lines: []string{"dial {h}:9000 proto=262"}, Raw: true, Sees: refused + "|EPERM|EPROTONOSUPPORT|ENOPROTOOPT", Control: arrives},
	{ID: "tcp-data-in-syn", Items: "T5", Lines: []string{"dial {h}:9000 fastopen=secret", "dial {h}:443 fastopen=secret", "dial {h}:22 fastopen=secret"}, Raw: true,
		Sees: "open|EOPNOTSUPP|" + cut, Control: arrives},
	{ID: "udp", Items: "T2", Lines: []string{"udp {h}:5000", "udp {h}:123", "udp {h}:51820"}, Sees: "EPERM", Control: arrives, Event: "kernel"},
	{ID: "quic", Items: "T2", Lines: []string{"udp {h}:443"}, Sees: "EPERM", Control: arrives, Event: "kernel"},
	{ID: "ping", Items: "T3", Lines: []string{"icmp {a}"}, Sees: "EPERM|EACCES", Control: arrives},
	{ID: "ping-raw", Items: "T3 T4", Lines: []string{"icmp {a} raw=1"}, Sees: "EPERM|EACCES", Control: arrives},
	{ID: "other-protocols", Items: "T5", Lines: []string{"dial {h}:9000 proto=132", "dial {h}:9000 type=dgram proto=136", "dial {h}:9000 proto=33", "dial {h}:9000 type=dgram proto=33"},
		Raw: true, Sees: "EPROTONOSUPPORT|ESOCKTNOSUPPORT|ECONNREFUSED|EPERM|EACCES", Control: Control{None: "kernels without these protocols can't send them; raw-protocols has the control"}},
	{ID: "other-families", Items: "T5", Lines: []string{
		"socket AF_VSOCK SOCK_STREAM", "socket AF_ALG SOCK_SEQPACKET", "socket AF_PACKET SOCK_RAW", "socket AF_XDP SOCK_RAW", "socket AF_TIPC SOCK_STREAM", "socket AF_RDS SOCK_SEQPACKET",
		"socket AF_SMC SOCK_STREAM", "socket AF_KEY SOCK_RAW", "socket AF_BLUETOOTH SOCK_RAW", "socket AF_CAN SOCK_RAW",
	}, Sees: "EPERM|EACCES|EAFNOSUPPORT", Families: Neither, Place: Docker, Who: []Identity{Worker}, Control: Control{None: "TestB02_NoNewPrivilegesAndSeccomp has it"}},
}

// rawTries make packets themselves.
var rawTries = []Try{
	{ID: "raw-tcp", Items: "T4", Lines: []string{"raw {a} 6"}, Raw: true, Sees: "EPERM|EACCES", Control: arrives},
	{ID: "raw-udp", Items: "T4", Lines: []string{"raw {a} 17 port=5000"}, Raw: true, Sees: "EPERM|EACCES", Control: arrives},
	{ID: "raw-protocols", Items: "T5 T4", Lines: []string{"raw {a} 132", "raw {a} 33", "raw {a} 136", "raw {a} 47", "raw {a} 4", "raw {a} 41", "raw {a} 50", "raw {a} 115"},
		Raw: true, Sees: "EPERM|EACCES", Control: arrives},
	{ID: "raw-forged-source", Items: "T4", Lines: []string{"raw {a} 17 header=1 from={lo} port=5000", "raw {a} 17 header=1 from={dns} port=5001", "raw {a} 6 header=1 from={a}"}, Raw: true,
		Sees: "EPERM|EACCES", Default: "EPERM|EINVAL", Control: Control{None: "raw-udp has it; forged sources are dropped by ordinary hosts too"}},
	{ID: "raw-question-forged-source", Items: "T4 D1", Lines: []string{"raw {a} 17 header=1 from={dns} port=53"}, Raw: true, Sees: "EPERM|EACCES", Default: "sent",
		Control: Control{None: "raw-udp has it; here the packet is redirected to the guard, whose answer leads nowhere"}},
	{ID: "raw-fragment", Items: "T4", Lines: []string{"raw {a} 17 header=1 fragment=1 port=5000"}, Raw: true, Sees: "EPERM", Default: "sent|EPERM", Families: OnlyV4,
		Control: Control{None: "a lone fragment is kept back by connection tracking on an ordinary host too"}},
	{ID: "raw-extension-headers", Items: "T1 T4", Lines: []string{"raw {a} 6 header=1 next=0 from=::1", "raw {a} 6 header=1 next=60 from=::1", "raw {a} 17 header=1 next=43 from=::1", "raw {a} 17 header=1 next=44 from=::1"},
		Raw: true, Sees: "EPERM", Default: "EPERM|sent|EINVAL", Families: OnlyV6, Control: Control{None: "the source is loopback's, which an ordinary host doesn't let out"}},
	{ID: "frame-out", Items: "T4", Lines: []string{"frame {h}:9000", "frame {h}:443"}, Raw: true, Sees: "EPERM|EACCES", Default: "silent|reset",
		Control: Control{None: "the only device is lo"}},
	{ID: "frame-to-transparent-port", Items: "T4 S1", Lines: []string{"frame {lh}:533", "frame {lh}:534", "frame {lh}:535"}, Raw: true, Sees: "EPERM|EACCES", Default: "silent|reset", Control: ours},
	{ID: "frame-to-dns", Items: "T4 D1", Lines: []string{"frame {lh}:531 proto=udp"}, Raw: true, Sees: "EPERM|EACCES", Default: "silent", Control: ours},
	{ID: "frame-with-forged-source", Items: "T4", Lines: []string{"frame {lh}:534 from={h}:443", "frame {lh}:535 from={h}:22"}, Raw: true, Sees: "EPERM|EACCES", Default: "silent|reset", Control: ours},
}

// addressTries use options and addresses that lead around rules elsewhere.
var addressTries = []Try{
	{ID: "mark", Items: "T4 L5", Lines: []string{"dial {h}:9000 mark=1", "dial {h}:9000 mark=255"}, Raw: true, Sees: "EPERM", Default: "EPERM|" + refused, Control: arrives},
	{ID: "device", Items: "T4", Lines: []string{"connect {h}:9000 device=lo"}, Sees: refused + "|EPERM", Control: Control{None: "a device other than lo is not there to be named"}},
	{ID: "transparent-source", Items: "T4", Lines: []string{"dial {h}:9000 transparent=1 from={dns} limit=150ms"}, Raw: true, Sees: "EPERM", Default: refused + "|EPERM|ETIMEDOUT", Control: rights,
		Lost: "the reset goes to the source that the intruder chose, and is denied there"},
	{ID: "foreign-source", Items: "T4", Lines: []string{"dial {h}:9000 freebind=1 from={dns} limit=150ms"}, Raw: true, Sees: refused + "|EPERM|ENETUNREACH|ETIMEDOUT", Control: nowhere,
		Lost: "the reset goes to the source that the worker chose, and is denied there"},
	{ID: "foreign-source-redirected", Items: "T4 N2", Lines: []string{"dial {h}:443 freebind=1 from={dns} limit=150ms"}, Raw: true, Sees: refused + "|EPERM|ENETUNREACH|ETIMEDOUT|open", Control: nowhere,
		Lost: "the answer goes to the source that the worker chose, and is denied there"},
	{ID: "source-route", Items: "T4", Lines: []string{"dial {a}:9000 via=127.0.0.1 limit=150ms"}, Raw: true, Sees: refused + "|EPERM|ETIMEDOUT|EINVAL|ENETUNREACH", Families: OnlyV4, Control: nowhere,
		Lost: "the kernel drops packets with a source route at loopback"},
	{ID: "translated-addresses", Items: "T1 D9", Lines: []string{"connect [64:ff9b::c633:6442]:9000", "connect [2002:c633:6442::1]:9000", "connect [::198.51.100.66]:9000", "connect [2001::1]:9000"},
		Sees: refused, Families: OnlyV6, Control: nowhere},
	{ID: "translated-addresses-web", Items: "T1 T8", Lines: []string{"http http://[64:ff9b::a9fe:a9fe]/", "http http://[2002:a9fe:a9fe::1]/", "http http://[::ffff:169.254.169.254]/"},
		Sees: told + "|" + cut, Families: OnlyV6, Control: nowhere},
	{ID: "multicast", Items: "D13 T5", Lines: []string{"udp 239.1.1.1:5000", "udp 224.0.0.1:5000", "udp 255.255.255.255:67"}, Sees: "EPERM|EACCES|ENETUNREACH", Families: OnlyV4, Control: nowhere},
	{ID: "multicast-6", Items: "D13 T5", Lines: []string{"udp [ff05::1]:5000", "udp [ff02::1%lo]:5000", "udp [ff0e::1]:5000"}, Sees: "EPERM|EACCES|ENETUNREACH|EADDRNOTAVAIL", Families: OnlyV6, Control: nowhere},
	{ID: "link-local", Items: "T8", Lines: []string{"connect 169.254.1.1:9000", "connect 169.254.169.254:9000", "udp 169.254.169.253:123"}, Sees: refused + "|EPERM", Families: OnlyV4, Control: nowhere},
	{ID: "link-local-6", Items: "T8", Lines: []string{"connect [fe80::1%lo]:9000", "connect [fd00:ec2::254]:9000"}, Sees: refused + "|ENETUNREACH|EADDRNOTAVAIL", Families: OnlyV6, Control: nowhere},
	{ID: "metadata", Items: "T8", Lines: []string{"http http://169.254.169.254/latest/meta-data/", "http http://168.63.129.16/", "http http://100.100.100.200/", "http http://[fd00:ec2::254]/"},
		Sees: told, Families: Neither, Control: Control{None: "TestB26_MetadataNeverLeaves has it, behind a fence"}},
	{ID: "private-ranges", Items: "T7 T9", Lines: []string{"http http://10.0.0.1/", "http http://172.17.0.1/", "http http://192.168.1.1/", "http http://100.64.0.1/", "http http://198.18.0.2/"},
		Sees: told, Families: Neither, Control: Control{None: "TestB26_HostAndPrivateRanges has it"}},
	{ID: "host", Items: "T7", Lines: []string{"tcp {host}", "tcp {gateway}:22", "connect {gateway}:2375"}, Sees: refused + "|" + cut, Families: Neither, Place: Docker,
		Control: Control{None: "TestB26_HostAndPrivateRanges has it"}},
	{ID: "guard-itself", Items: "T9 P3 N10", Lines: []string{"connect {guard}:536", "connect {guard}:531", "http http://{guard}/"}, Sees: refused + "|" + told, Families: Neither, Place: Docker, Control: ours},
	{ID: "other-containers", Items: "T9", Lines: []string{"connect {peer}:1", "http http://{peer}/"}, Sees: refused + "|" + told, Families: Neither, Place: Docker, Control: ours},
}
