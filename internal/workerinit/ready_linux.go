package workerinit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/llmdo/workshop/firewall"
)

// Every query waits in the room's socket until there is a guard, so the answer arrives
// as soon as there is one. Another query is only needed if the first was refused (no
// room yet) or lost (its socket was full).
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
)

// resolver is any address: a room redirects all queries to the guard.
const resolver = "127.0.0.1:53"

// waitForRoom asks the room's DNS for [firewall.ReadyName] until it answers.
func waitForRoom(ctx context.Context) error {
	query, id, err := readyQuery()
	if err != nil {
		return err
	}
	start := time.Now()
	var last error
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		if err := ask(ctx, query, id, retry); err == nil {
			return nil
		} else if !errors.Is(err, errNoAnswer) {
			last = err
			// Refused immediately: don't spin.
			select {
			case <-ctx.Done():
			case <-time.After(retry):
			}
		} else {
			last = err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the guard did not answer within %v (%w): look at the logs of the services guard and room", time.Since(start).Round(time.Second), last)
		}
	}
}

var errNoAnswer = errors.New("no answer")

// ask sends the query and waits for an answer to it until wait is over.
func ask(ctx context.Context, query []byte, id uint16, wait time.Duration) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp4", resolver)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(query); err != nil {
		return err
	}
	conn.SetReadDeadline(time.Now().Add(wait))
	buf := make([]byte, 1232)
	for {
		n, err := conn.Read(buf)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return errNoAnswer
		}
		if err != nil {
			return err
		}
		if isReady(buf[:n], id) {
			return nil
		}
	}
}

func readyQuery() (query []byte, id uint16, err error) {
	id = uint16(time.Now().UnixNano()) | 1
	name, err := dnsmessage.NewName(firewall.ReadyName + ".")
	if err != nil {
		return nil, 0, err
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, RecursionDesired: true})
	if err := errors.Join(b.StartQuestions(), b.Question(dnsmessage.Question{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET})); err != nil {
		return nil, 0, err
	}
	query, err = b.Finish()
	return query, id, err
}

// isReady reports whether the message is a successful answer to our query.
// Without a guard there is no answer; its content doesn't matter.
func isReady(b []byte, id uint16) bool {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	return err == nil && h.Response && h.ID == id && h.RCode == dnsmessage.RCodeSuccess
}
