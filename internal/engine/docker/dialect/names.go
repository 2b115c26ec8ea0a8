package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// hosts is the text of /etc/hosts (hosts(5)).
func (n Names) hosts() string {
	text := "127.0.0.1\tlocalhost\n::1\tlocalhost\n"
	for _, host := range n.Hosts {
		name, address, _ := strings.Cut(host, ":")
		text += address + "\t" + name + "\n"
	}
	return text
}

// resolv is the text of /etc/resolv.conf (resolv.conf(5)).
func (n Names) resolv() string {
	var text strings.Builder
	for _, server := range n.Servers {
		text.WriteString("nameserver " + server + "\n")
	}
	for _, line := range []struct {
		key  string
		list []string
	}{{"search", n.Search}, {"options", n.Options}} {
		if len(line.list) > 0 {
			text.WriteString(line.key + " " + strings.Join(line.list, " ") + "\n")
		}
	}
	return text.String()
}

// digest is enough of a SHA-256 to name a file by its text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
