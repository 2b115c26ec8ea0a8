package guard

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
)

// A refused connection to an address that several names have is reported by the name
// that was asked for last, whichever refuses it: the room's rules, or the guard on a
// port that another line has.
func TestRefusedNameOfASharedAddress(t *testing.T) {
	w := newWorld(t, restricted(t, "a.example.org", "b.example.org", "c.example.org", "other.example.org:22"))
	names := []string{"a.example.org", "b.example.org", "c.example.org"}
	for _, n := range names {
		w.in.Answer(n, testnet.A(testnet.Allowed))
	}
	worker := w.policy.Rooms[0].Workers[0]
	for _, port := range []string{"22", "23"} {
		for _, asked := range []string{"c.example.org", "a.example.org", "b.example.org", "a.example.org"} {
			w.ask("room", "udp", "127.0.0.11:53", asked+".", dns.TypeA)
			since := time.Now()
			w.refused("room", testnet.Allowed+":"+port)
			var f control.Failures
			if err := w.host(control.Request{Op: control.OpFailed, Worker: worker, Since: since}, &f); err != nil {
				t.Fatal(err)
			}
			if len(f.Events) != 1 || f.Events[0].Name != asked || f.Events[0].Suggest != asked+":"+port {
				t.Errorf("port %s after a question for %s: %+v", port, asked, f.Events)
			}
		}
	}
}
