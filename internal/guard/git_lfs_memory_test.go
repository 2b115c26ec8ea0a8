package guard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// TestB60_LFSAnswers: answers of LFS that a worker doesn't read, from a host that makes them
// as costly as it can, cost a bounded memory.
func TestB60_LFSAnswers(t *testing.T) {
	if testutil.Race {
		t.Skip("measures memory")
	}
	w := buildWorld(t, gitPolicy(t, "read acme/lib"))
	memory, err := testutil.NewMemoryGroup(firewall.GuardMemory)
	if err != nil {
		testutil.Require(t, false, "memory group: "+err.Error())
	}
	t.Cleanup(func() {
		if err := memory.Remove(); err != nil {
			t.Error(err)
		}
	})
	w.groups = map[string]*testutil.MemoryGroup{"guard": memory}
	w.policy.Roots = [][]byte{w.root()}
	w.writePolicy()
	w.startRooms()
	w.startGuard()
	id := strings.Repeat("0a", 32)
	var answer atomic.Pointer[string]
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", lfsType)
		io.WriteString(rw, *answer.Load())
	}))
	d := net.Dialer{Control: peer.Control, Timeout: 5 * time.Second}
	long := `{"oid":"` + id + `","actions":{"download":{"href":"https://store.example.org/` + strings.Repeat("x", 1000) + `"}}}`
	for _, x := range []struct {
		name, answer string
		most         int // answers that are let through
	}{
		{"parts that cost more than their text", `{"objects":[{}` + strings.Repeat(",{}", 85_000) + `]}`, 0},
		// Those of the first connections are in their sockets' buffers.
		{"nobody reads them", `{"objects":[` + long + strings.Repeat(","+long, 200) + `]}`, maxLarge + 40},
	} {
		answer.Store(&x.answer)
		through := 0
		var conns []net.Conn
		for range maxSecure {
			var c net.Conn
			if err := w.rooms["room"].ns.Do(func() (err error) { c, err = d.Dial("tcp", apiAddr); return err }); err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			io.WriteString(c, post("/acme/lib.git/info/lfs/objects/batch", lfsType, `{"operation":"download","objects":[{"oid":"`+id+`","size":1}]}`))
			c.SetReadDeadline(time.Now().Add(10 * time.Second))
			line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
			check(t, err)
			if strings.Contains(line, " 200 ") {
				through++
			}
		}
		if through > x.most || x.most > 0 && through == 0 {
			t.Errorf("%s: %d answers are let through, want at most %d", x.name, through, x.most)
		}
		for _, c := range conns {
			c.Close()
		}
		none := `{"objects":[]}`
		answer.Store(&none)
		testutil.Eventually(t, "their places are free", func() bool {
			resp, _ := w.send(apiAddr, post("/acme/lib.git/info/lfs/objects/batch", lfsType, `{"operation":"download","objects":[{"oid":"`+id+`","size":1}]}`))
			return resp.StatusCode == http.StatusOK
		})
	}
	peak, err := memory.Peak()
	check(t, err)
	killed, err := memory.Killed()
	check(t, err)
	if mib := peak >> 20; mib > 150 || killed > 0 {
		t.Errorf("the guard used %d MiB, and was ended %d times", mib, killed)
	} else {
		t.Logf("the guard used %d MiB", mib)
	}
}
