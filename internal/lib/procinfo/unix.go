package procinfo

import "strings"

// Listens reports whether a /proc/net/unix (proc_net_unix(5)) has a socket that accepts
// connections at a path which begins and ends so.
func Listens(text, begin, end string) bool {
	for line := range strings.Lines(text) {
		// Num RefCount Protocol Flags Type St Inode Path
		field := strings.Fields(line)
		const accepting = "00010000" // __SO_ACCEPTCON
		if len(field) == 8 && field[3] == accepting && strings.HasPrefix(field[7], begin) && strings.HasSuffix(field[7], end) {
			return true
		}
	}
	return false
}
