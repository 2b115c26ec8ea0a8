package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
)

// What a program was refused, the host gets at once when it asks: look-ups,
// connections, and packets that the room's rules refused, also what repeats (B28).
func TestDeniedIsComplete(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	worker := w.policy.Rooms[0].Workers[0]
	for i := range 100 {
		since := time.Now()
		w.ask("room", "udp", "127.0.0.11:53", fmt.Sprintf("n%d.example.org.", i), 1)
		w.refused("room", testnet.Allowed+":22")
		var d control.Failures
		if err := w.host(control.Request{Op: control.OpFailed, Worker: worker, Since: since}, &d); err != nil {
			t.Fatal(err)
		}
		if d.Room != "room" || !slices.Equal(d.Workers, w.policy.Rooms[0].Workers) {
			t.Fatalf("the room %q of %q", d.Room, d.Workers)
		}
		var got []string
		for _, e := range d.Events {
			got = append(got, fmt.Sprint(e.Name, " ", e.Port))
		}
		if want := fmt.Sprintf("n%d.example.org 53", i); len(got) != 2 || got[0] != want || !strings.HasSuffix(got[1], " 22") {
			t.Fatalf("refusals %d: %q", i, got)
		}
	}
	for name, r := range map[string]control.Request{
		"no such worker": {Op: control.OpFailed, Worker: "nobody", Since: time.Now()},
		"no time":        {Op: control.OpFailed, Worker: worker},
	} {
		var d control.Failures
		if _, refused := errors.AsType[*control.RefusedError](w.host(r, &d)); !refused {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
