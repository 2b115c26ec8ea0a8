//go:build linux

package probe

// probes lists every kind of try. A new one is a line here and a function in
// the file of its subject.
func probes() []probe {
	return append([]probe{
		// connections
		{"connect", "ADDR:PORT [device=IF] [bind=IP]", "open, or why not; nothing is sent", 1, connect},
		{"tcp", "ADDR:PORT [send=TEXT] [bytes=N]", "data (detail: what came), EOF, or why not", 1, tcp},
		{"hold", "ADDR:PORT", "kept when an echo there answered until limit=, or how the connection ended", 1, hold},
		{"http", "URL [connect=ADDR:PORT] [host=H] [sni=H] [ca=FILE] [proxy=URL|env] [method=M]", "the status code", 1, httpGet},
		{"tls", "HOST:PORT [connect=ADDR:PORT] [sni=H] [keep=DURATION]", "handshake, or why not; any certificate will do, no request is sent; with keep= kept, or how it ended", 1, handshake},
		{"tunnel", "PROXY:PORT HOST:PORT", "the proxy's status code for CONNECT", 2, tunnel},
		{"udp", "ADDR:PORT [send=TEXT]", "data, or why not", 1, udp},
		{"icmp", "ADDR [raw=1]", "reply, or why not (detail: at which call)", 1, icmp},
		{"loop", "ADDR:PORT", "ok when a listener there and a connection to it work", 1, loop},
		{"serve", "ADDR:PORT [text=T]", "serves HTTP until it is killed; prints a line when it listens", 1, serve},
		{"bind", "tcp|udp ADDR:PORT", "ok, or why not", 2, bind},
		// names
		{"dns", "SERVER[:PORT] NAME [TYPE] [net=tcp]", "addresses, NODATA, or the rcode", 2, dnsAsk},
		{"lookup", "NAME", "addresses by the system's configuration, or NXDOMAIN", 1, lookup},
		// sockets and the room
		{"socket", "FAMILY TYPE [PROTO]", "ok, or why not", 2, socket},
		{"sockopt", "mark|transparent|freebind|device=IF", "ok, or why not", 0, sockopt},
		{"interfaces", "", "the interfaces, sorted", 0, interfaces},
		{"addresses", "", "the addresses of all interfaces, sorted", 0, addresses},
		{"route", "add|del PREFIX|default [dev=IF] [via=IP]", "ok, or why not", 2, route},
		{"link", "add|del|down|up NAME", "ok, or why not", 2, link},
		{"address", "add|del ADDR/LEN [dev=IF]", "ok, or why not", 2, address},
		{"rules", "flush|add|del", "ok, or why not (nf_tables by netlink; add and del of a table of its own)", 1, rules},
		{"xtables", "", "ok, or why not (the socket that legacy iptables uses)", 0, xtables},
		// files
		{"read", "PATH [bytes=N]", "ok (detail: what it holds), or why not", 1, read},
		{"list", "DIR", "the names in it, empty, or why not", 1, list},
		{"write", "PATH [text=T]", "ok, or why not; without text the file is not changed, and removed if new", 1, write},
		{"readlink", "PATH", "where the link leads, or why not", 1, readlink},
		{"mkdir", "PATH", "ok, or why not; removed again", 1, mkdir},
		{"rename", "OLD NEW", "ok, or why not", 2, rename},
		{"remove", "PATH", "ok, or why not", 1, remove},
		{"chmod", "MODE PATH", "the mode it then has, or why not", 2, chmod},
		{"mknod", "PATH", "ok, or why not (a character device 1:3)", 1, mknod},
		{"stat", "PATH", "uid:gid mode", 1, stat},
		{"mount", "PATH", "ro or rw (detail: the file system), or none", 1, mount},
		{"writable", "", "all mount points that this process may write", 0, writable},
		{"fill", "PATH SIZE", "ENOSPC, or ok when SIZE fits", 2, fill},
		// processes
		{"status", "FIELD [PID]", "that field of /proc/PID/status", 1, status},
		{"env", "NAME", "its value, or unset", 1, env},
		{"environ", "", "the names of all variables, sorted", 0, environ},
		{"uid", "", "uid:gid and supplementary groups", 0, uid},
		{"exec", "PATH [ARG...]", "exit N, killed, or why not", 1, execute},
		{"syscall", "NAME", "ok, or why not", 1, systemCall},
		{"namespace", "user|net|mnt|pid", "ok, or why not (a child in a new one)", 1, namespace},
		{"signal", "NAME PID", "ok, or why not", 2, signal},
		{"memory", "SIZE", "ok when a child could use so much, else killed", 1, memory},
		{"processes", "N", "ok when N children ran at once, else EAGAIN (detail: how many)", 1, processes},
	}, added...)
}
