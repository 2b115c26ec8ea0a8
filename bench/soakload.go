//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// soakLoad asks and connects, and counts what fails.
type soakLoad struct {
	*soakWorld
	roots     *x509.CertPool
	asked     atomic.Int64
	exchanges atomic.Int64
	connected atomic.Int64

	wg       sync.WaitGroup
	mu       sync.Mutex
	failures int
	first    []error
}

func (l *soakLoad) fail(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return // what the end interrupts is no failure
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures++; len(l.first) < 5 {
		l.first = append(l.first, err)
	}
}

func (l *soakLoad) wait() { l.wg.Wait() }

func (l *soakLoad) report(took time.Duration) error {
	fmt.Printf("%d questions (%.0f a second), %d connections, %d exchanges over them, %d failures\n",
		l.asked.Load(), float64(l.asked.Load())/took.Seconds(), l.connected.Load(), l.exchanges.Load(), l.failures)
	if rate := float64(l.asked.Load()) / took.Seconds(); rate < 0.9*soakQuestions {
		return errors.Join(append(l.first, fmt.Errorf("only %.0f questions a second were asked: the machine is too busy to tell anything", rate))...)
	}
	if err := lost(l.failures, int(l.asked.Load()+l.connected.Load()+l.exchanges.Load())+l.failures); err != nil {
		return errors.Join(append(l.first, err)...)
	}
	for _, err := range l.first {
		fmt.Println("one that failed:", err)
	}
	return nil
}

// lost fails where one of soakLost requests failed, or more.
func lost(failures, all int) error {
	if failures*soakLost < all {
		return nil
	}
	return fmt.Errorf("%d of %d requests failed, want fewer than 1 of %d", failures, all, soakLost)
}

// ask asks soakQuestions questions a second, over sockets that are changed now
// and then, one of ten over TCP.
func (l *soakLoad) ask(ctx context.Context) {
	const askers = 50
	for i := range askers {
		l.wg.Go(func() {
			network := "udp"
			if i%10 == 0 {
				network = "tcp"
			}
			var c *dns.Conn
			tick := time.NewTicker(time.Second * askers / soakQuestions)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if n%100 == 0 || c == nil {
					if c != nil {
						c.Close()
					}
					nc, err := l.dial(network, "198.51.100.54:53")
					if c = nil; err != nil {
						l.fail(ctx, fmt.Errorf("dns over %s: %w", network, err))
						continue
					}
					c = &dns.Conn{Conn: nc, UDPSize: 1232}
				}
				if err := l.question(c); err != nil {
					l.fail(ctx, err)
					c.Close()
					c = nil
				}
			}
		})
	}
}

// question asks one question: mostly for names of the many, some under the
// wildcard, some that are denied or of another type.
func (l *soakLoad) question(c *dns.Conn) error {
	i := rand.IntN(soakNames)
	name, want, kind := soakName(i), soakAddr(i), dns.TypeA
	switch rand.IntN(50) {
	case 0:
		name, want = fmt.Sprintf("x%d.denied.example.org", rand.IntN(200)), ""
	case 1:
		kind, want = dns.TypeHTTPS, "none"
	case 2:
		i := rand.IntN(wildNames)
		name, want = wildName(i), soakAddr(i)
	}
	q := new(dns.Msg).SetQuestion(name+".", kind)
	q.SetEdns0(1232, false)
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if err := c.WriteMsg(q); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	m, err := c.ReadMsg()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l.asked.Add(1)
	switch {
	case m.Id != q.Id:
		return fmt.Errorf("%s: the answer to another question", name)
	case want == "" && m.Rcode == dns.RcodeNameError, want == "none" && m.Rcode == dns.RcodeSuccess && len(m.Answer) == 0:
		return nil
	case m.Rcode == dns.RcodeSuccess && len(m.Answer) == 1:
		if a, ok := m.Answer[0].(*dns.A); ok && a.A.String() == want {
			return nil
		}
	}
	return fmt.Errorf("%s: %s, %v", name, dns.RcodeToString[m.Rcode], m.Answer)
}

// open opens soakConns connections, six of ten for the whole time, and keeps
// as many open: it returns when all are there.
func (l *soakLoad) open(ctx context.Context) error {
	l.roots = l.in.Roots()
	var there sync.WaitGroup
	for i := range soakConns {
		there.Add(1)
		l.wg.Go(func() {
			once := sync.OnceFunc(there.Done)
			defer once()
			life := func() time.Duration { return time.Hour }
			if i%10 >= 6 {
				life = func() time.Duration { return time.Duration(3+rand.IntN(5)) * time.Second }
			}
			// Not all in the same moment.
			pause(ctx, time.Duration(i)*5*time.Millisecond)
			for ctx.Err() == nil {
				if err := l.connection(ctx, i, life(), once); err != nil {
					l.fail(ctx, err)
					pause(ctx, time.Second)
				}
			}
		})
	}
	all := make(chan struct{})
	go func() { there.Wait(); close(all) }()
	select {
	case <-all:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ended:
		return errors.New("the guard or the room has ended")
	}
	if err := errors.Join(l.first...); err != nil {
		return err
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// connection lives for as long, with an exchange each few seconds; opened is
// called after the first.
func (l *soakLoad) connection(ctx context.Context, i int, life time.Duration, opened func()) error {
	host := soakHost(rand.IntN(soakHosts))
	var addr string
	var exchange func(net.Conn, *bufio.Reader) error
	switch i % 5 {
	case 0, 1: // TLS by name
		addr, exchange = "198.51.100.9:443", request(host)
	case 2: // HTTP by name
		addr, exchange = "198.51.100.9:80", request(host)
	case 3: // by range
		addr, exchange = fmt.Sprintf("198.51.100.%d:9000", 193+rand.IntN(60)), echo
	case 4: // to a pinned address
		addr, exchange = "198.51.100.90:2222", echo
		if err := l.pin(pinnedTCP); err != nil {
			return err
		}
	}
	c, err := l.dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	l.connected.Add(1)
	if i%5 < 2 {
		c = tls.Client(c, &tls.Config{ServerName: host, RootCAs: l.roots})
	}
	r := bufio.NewReader(c)
	for end := time.Now().Add(life); ; {
		c.SetDeadline(time.Now().Add(10 * time.Second))
		if err := exchange(c, r); err != nil {
			return fmt.Errorf("%s (%s): %w", addr, host, err)
		}
		l.exchanges.Add(1)
		opened()
		left := time.Until(end)
		if left <= 0 || ctx.Err() != nil {
			return nil
		}
		pause(ctx, min(left, time.Duration(2000+rand.IntN(6000))*time.Millisecond))
	}
}

func request(host string) func(net.Conn, *bufio.Reader) error {
	return func(c net.Conn, r *bufio.Reader) error {
		if _, err := fmt.Fprintf(c, "GET /bytes/%d HTTP/1.1\r\nHost: %s\r\n\r\n", rand.IntN(20_000), host); err != nil {
			return err
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
}

func echo(c net.Conn, r *bufio.Reader) error {
	out := bytes.Repeat([]byte{'x'}, 1+rand.IntN(4000))
	if _, err := c.Write(out); err != nil {
		return err
	}
	in := make([]byte, len(out))
	if _, err := io.ReadFull(r, in); err != nil {
		return err
	}
	if !bytes.Equal(in, out) {
		return errors.New("the echo is another")
	}
	return nil
}

// pin asks for a name, so that its address may be dialled.
func (l *soakLoad) pin(name string) error {
	c, err := l.dial("udp", "198.51.100.54:53")
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	d := &dns.Conn{Conn: c}
	if err := d.WriteMsg(new(dns.Msg).SetQuestion(name+".", dns.TypeA)); err != nil {
		return err
	}
	m, err := d.ReadMsg()
	if err == nil && len(m.Answer) != 1 {
		err = fmt.Errorf("%s: %s", name, dns.RcodeToString[m.Rcode])
	}
	return err
}
