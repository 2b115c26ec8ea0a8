package workerinit

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/internal/carrier/relay"
)

// outletTimeout bounds the wait for the outlet, which starts when the worker does.
const outletTimeout = 10 * time.Second

// startRelay connects to the outlet before anything else can, and starts the relay, which
// connects again whenever the connection ended.
func startRelay(ctx context.Context, o Options, stderr io.Writer) error {
	dial := func(ctx context.Context) (io.ReadWriteCloser, error) {
		return new(net.Dialer).DialContext(ctx, "unix", o.Relay)
	}
	first, err := dialFirst(ctx, o.Timeout, dial)
	if err != nil {
		return fmt.Errorf("the outlet can't be reached (%w): look at the logs of the service outlet, and register the worker's runtime with --host-uds=open", err)
	}
	if err := everyAddress(); err != nil {
		first.Close()
		return fmt.Errorf("not every address is the worker's own (%w): register its runtime with --network=sandbox", err)
	}
	var next atomic.Pointer[io.ReadWriteCloser]
	next.Store(&first)
	_, err = relay.New(relay.Options{
		Ports: relay.Ports,
		Log:   func(line string) { fmt.Fprintln(stderr, "relay: "+line) },
		Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			if c := next.Swap(nil); c != nil {
				return *c, nil
			}
			return dial(ctx)
		},
	})
	return err
}

// everyAddress returns an error unless addresses of both halves of IPv4 are local: what the
// worker connects to would not come to the relay.
func everyAddress() error {
	for _, a := range []net.IP{net.IPv4(1, 1, 1, 1), net.IPv4(198, 51, 100, 1)} {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: a})
		if err != nil {
			return err
		}
		c.Close()
	}
	return nil
}

// dialFirst dials until it succeeds, or a timeout ends (0: only that of outlets does).
func dialFirst(ctx context.Context, timeout time.Duration, dial func(context.Context) (io.ReadWriteCloser, error)) (io.ReadWriteCloser, error) {
	if timeout == 0 || timeout > outletTimeout {
		timeout = outletTimeout
	}
	end := time.After(timeout)
	for retry := firstRetry; ; retry = min(2*retry, lastRetry/5) {
		c, err := dial(ctx)
		if err == nil {
			return c, nil
		}
		select {
		case <-time.After(retry):
		case <-end:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}
