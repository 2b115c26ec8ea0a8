package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// maxServers is MAXNS of resolv.conf(5).
const maxServers = 3

// Resolvers are the name servers of a resolv.conf.
func Resolvers(text string) (list []netip.AddrPort) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" || len(list) == maxServers {
			continue
		}
		if a, err := netip.ParseAddr(f[1]); err == nil {
			list = append(list, netip.AddrPortFrom(a, 53))
		}
	}
	return list
}

// dnsTime is how long a resolver may take.
const dnsTime = 2 * time.Second

// DNS asks the resolvers of a file for `localhost.`, which they answer by themselves
// (RFC 6761): any response is one.
func DNS(ctx context.Context, file string) []Finding {
	text, err := boundedfile.Read(file, 1<<20)
	if err != nil {
		return []Finding{{Network, "dns", Warning, "names can't be looked up: " + err.Error(), "see where it leads: `ls -l " + file + "`"}}
	}
	servers := Resolvers(string(text))
	failed := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { failed[i] = askResolver(ctx, s) })
	}
	all.Wait()
	return []Finding{resolversFinding(file, servers, failed)}
}

func resolversFinding(file string, servers []netip.AddrPort, failed []error) Finding {
	f := Finding{Network, "dns", OK, "", ""}
	var good, bad []string
	for i, s := range servers {
		if failed[i] == nil {
			good = append(good, s.Addr().String())
		} else {
			bad = append(bad, fmt.Sprintf("%s (%v)", s.Addr(), failed[i]))
		}
	}
	switch {
	case len(servers) == 0:
		f.Level, f.Text, f.Do = Warning, "names can't be looked up: "+file+" has no nameserver", "see what should write it: `ls -l "+file+"`"
	case len(good) == 0:
		f.Level, f.Text, f.Do = Warning, "no resolver answers: "+strings.Join(bad, ", "), "ask one yourself: `getent hosts localhost`, and correct "+file
	case len(bad) > 0:
		f.Level, f.Text, f.Do = Warning, strings.Join(good, ", ")+" answers, but not "+strings.Join(bad, ", ")+": look-ups may wait for it", "remove it from "+file
	default:
		f.Text = "the resolver answers: " + strings.Join(good, ", ")
	}
	return f
}

func askResolver(ctx context.Context, server netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, dnsTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", server.String())
	if err != nil {
		return cause(err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	const id = 0x5773
	question := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("localhost."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	b, err := question.Pack()
	if err != nil {
		return err
	}
	if _, err := conn.Write(b); err != nil {
		return cause(err)
	}
	answer := make([]byte, 512)
	for {
		n, err := conn.Read(answer)
		if err != nil {
			return cause(err)
		}
		var p dnsmessage.Parser
		if h, err := p.Start(answer[:n]); err == nil && h.ID == id && h.Response {
			return nil
		}
	}
}

// cause is the innermost error of one of the network, which repeats addresses.
func cause(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return errors.New("no answer")
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
