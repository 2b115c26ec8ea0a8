package guard

import (
	"bufio"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestUploadBudgetWebSocket: what follows a switch of protocols counts as well,
// on top of the request.
func TestUploadBudgetWebSocket(t *testing.T) {
	w := newWorld(t, budgeted(t, "allowed.example.org:80 upload 4K/h"))
	c := w.mustDial("room", "tcp", testnet.Allowed+":80")
	br := bufio.NewReader(c)
	io.WriteString(c, "GET /upgrade HTTP/1.1\r\nHost: allowed.example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	for i := 0; ; i++ {
		if i > 100 {
			t.Fatal("no end")
		}
		if _, err := c.Write(make([]byte, 500)); err != nil {
			break
		}
		if _, err := io.ReadFull(br, make([]byte, 500)); err != nil {
			break
		}
	}
	w.guard.eventually(1, "the budget", usedUp("workshop.yaml:10"))
	w.guard.eventually(1, "the end", func(e event) bool { return e.Verdict == "end" && e.BytesUp == 4<<10 })
	if w.state().Rooms[0].Budgets[0].Used != 4<<10 {
		t.Errorf("%+v", w.state().Rooms[0].Budgets)
	}
}

// TestUploadBudgetOfTheRoom: a budget is the room's, whatever becomes of the room
// in between, and no other room's.
func TestUploadBudgetOfTheRoom(t *testing.T) {
	p := budgeted(t, "198.51.100.192/26:9000 upload 1K/h")
	second := p.Rooms[0]
	second.Room, second.Workers = "second", []string{"carol"}
	p.Rooms = append(p.Rooms, second)
	w := newWorld(t, p)
	c := w.carried("room", "198.51.100.200:9000")
	c.Write(make([]byte, 1023))
	io.ReadFull(c, make([]byte, 1023))
	c.Close()
	w.refused("room", "198.51.100.200:9000")
	w.echoes(w.carried("second", "198.51.100.200:9000"))
	w.rooms["room"].kill()
	ns, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	w.startRoom(w.policy.Rooms[0], ns)
	// Until the guard has it, the room refuses by itself.
	for end := time.Now().Add(5 * time.Second); w.guard.count(usedUp("workshop.yaml:10")) < 2 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		w.refused("room", "198.51.100.200:9000")
	}
	if w.guard.count(usedUp("workshop.yaml:10")) < 2 {
		t.Error("the new room has a new budget")
	}
}
