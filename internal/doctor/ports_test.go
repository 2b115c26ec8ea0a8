package doctor

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/ports"
)

// claimOf is "DIR HOST:PORT", with words that say how it is had.
func claimOf(t *testing.T, text string) PortClaim {
	t.Helper()
	f := strings.Fields(text)
	at := netip.MustParseAddrPort(f[1])
	c := PortClaim{Lease: ports.Lease{
		Key:  ports.Key{Dir: "/" + f[0], Project: f[0], Worker: "web", Target: 8080},
		Host: at.Addr().String(), Port: at.Port(),
	}, State: PortDown}
	for _, word := range f[2:] {
		switch word {
		case "up":
			c.State, c.Leased, c.Used = PortUp, true, true
		case "new":
			c.State = PortUp
		case "gone":
			c.State = PortGone
		case "unknown":
			c.State = PortUnknown
		case "reserved":
			c.Reserved = true
		case "stale":
			c.Stale = true
		case "busy":
			c.Busy = true
		case "ordinary":
			c.Ordinary = true
		default:
			t.Fatalf("%q", word)
		}
	}
	return c
}

// at is "PROJECT HOST:PORT".
func at(text string) PublishedAt {
	project, address, _ := strings.Cut(text, " ")
	return PublishedAt{Project: project, Dir: "/" + project, Container: project + "-1", At: netip.MustParseAddrPort(address)}
}

func listener(address string, uid, pid int, program string) Listener {
	return Listener{At: netip.MustParseAddrPort(address), UID: uid, User: map[int]string{1000: "ann", 1001: "bob"}[uid], PID: pid, Program: program}
}

func TestPorts(t *testing.T) {
	for _, tt := range []struct {
		name               string
		claims             []string
		published, foreign []string
		listeners          []Listener
		want               []string // LEVEL NAME ADDRESS, "…": a part of text or advice
	}{
		{name: "nothing"},
		{name: "clean", claims: []string{"a 127.0.0.1:8080 reserved", "b 127.0.0.1:26001 up busy", "c [::1]:8080", "d 127.0.0.2:8080 reserved"}, published: []string{"b 127.0.0.1:26001"}, foreign: []string{"shop 127.0.0.1:9000"},
			listeners: []Listener{listener("127.0.0.1:26001", 1000, 7, "workshop-init"), listener("0.0.0.0:22", 0, 0, "")}},
		{name: "reserved twice", claims: []string{"a 127.0.0.1:8080 reserved", "b 0.0.0.0:8080 reserved", "c 127.0.0.1:8080 reserved"},
			want: []string{"warning reserved-twice 127.0.0.1:8080: worker web of project a (/a) and worker web of project b (/b) and worker web of project c (/c): only one of them can be up: `\"0:8080\"`"}},
		{name: "chosen and reserved", claims: []string{"a 127.0.0.1:26001", "b 127.0.0.1:26001 reserved"},
			want: []string{"warning chosen-and-reserved 127.0.0.1:26001: chosen for worker web of project a (/a), is reserved by worker web of project b (/b): `workshop -f /a -p a port --release web 8080`"}},
		{name: "leased twice", claims: []string{"a 127.0.0.1:26001", "b 127.0.0.1:26001"},
			want: []string{"error leased-twice 127.0.0.1:26001: to worker web of project a (/a) and worker web of project b (/b): port --release web 8080`"}},
		{name: "taken", claims: []string{"a 127.0.0.1:8080 reserved busy", "b 127.0.0.1:26001 busy"}, listeners: []Listener{listener("0.0.0.0:8080", 1000, 12, "python3"), listener("127.0.0.1:26001", 1000, 0, "")},
			want: []string{"warning taken 127.0.0.1:8080: the file of worker web of project a (/a) reserves, is taken by python3 (pid 12) of ann: `ps -fp 12`", "warning taken 127.0.0.1:26001: was chosen for worker web of project b (/b), is taken by a program of ann: `sudo ss -Hltnp 'sport = :26001'`"}},
		{name: "by a socket of both families", claims: []string{"a 127.0.0.1:8080 reserved busy"}, listeners: []Listener{listener("[::]:8080", 1000, 12, "node")},
			want: []string{"warning taken 127.0.0.1:8080: node (pid 12) of ann"}},
		{name: "by what can't be seen", claims: []string{"a 127.0.0.1:8080 reserved busy"}, want: []string{"warning taken 127.0.0.1:8080: by a program that can't be seen from here"}},
		{name: "another user", claims: []string{"a 127.0.0.1:8080 reserved busy", "b 127.0.0.1:9090 busy"}, listeners: []Listener{listener("127.0.0.1:8080", 1001, 0, ""), listener("127.0.0.1:9090", 1002, 0, "")},
			want: []string{"error taken-by-other-user 127.0.0.1:8080: by a program of bob", "error taken-by-other-user 127.0.0.1:9090: by a program of uid 1002"}},
		{name: "by a workshop that isn't registered", claims: []string{"a 127.0.0.1:8080 reserved busy"}, published: []string{"b 127.0.0.1:8080"},
			want: []string{"warning taken 127.0.0.1:8080: is published by project b (/b): `workshop -p b down`"}},
		{name: "by a workshop that reserves it", claims: []string{"a 127.0.0.1:8080 reserved busy", "b 127.0.0.1:8080 reserved up busy"}, published: []string{"b 127.0.0.1:8080"},
			want: []string{"warning reserved-twice 127.0.0.1:8080: a"}},
		{name: "up and another has its port", claims: []string{"a 127.0.0.1:8080 reserved up busy"}, listeners: []Listener{listener("127.0.0.1:8080", 1000, 12, "python3")},
			want: []string{"warning taken 127.0.0.1:8080: python3"}},
		{name: "exposed", claims: []string{"a 0.0.0.0:8080 reserved up busy"}, published: []string{"a 0.0.0.0:8080", "b 198.51.100.1:9090"},
			want: []string{"warning exposed 0.0.0.0:8080: worker web of project a (/a) is published on 0.0.0.0:8080: `workshop -f /a -p a up`", "warning exposed 198.51.100.1:9090: project b (/b): `workshop -p b down`"}},
		{name: "exposed by a program of ours", listeners: []Listener{listener("0.0.0.0:5000", 1000, 12, "workshop-init")}, want: []string{"error exposed 0.0.0.0:5000: workshop-init (pid 12) of ann listens on 0.0.0.0:5000"}},
		{name: "foreign", foreign: []string{"shop 0.0.0.0:9000", "shop [::]:9000", "mail 127.0.0.1:25"},
			want: []string{"warning foreign-exposed 0.0.0.0:9000: container shop-1 of the Compose project shop: `docker compose -p shop up -d`"}},
		{name: "leftovers", claims: []string{"a 127.0.0.1:8080 gone reserved busy", "b 127.0.0.1:8080 stale", "c 127.0.0.1:8080 stale up busy"},
			want: []string{"warning directory-gone 127.0.0.1:8080 fixable: its directory is gone: `workshop doctor ports --fix`", "warning stale-lease 127.0.0.1:8080 fixable: doesn't publish that port any more"}},
		{name: "no endpoint", claims: []string{"a 127.0.0.1:8080 reserved up", "b 127.0.0.1:26001 up", "c 127.0.0.1:26002 new"}, published: []string{"b 127.0.0.1:26001"},
			want: []string{"error no-endpoint 127.0.0.1:8080: nothing listens on 127.0.0.1:8080: `workshop -f /a -p a up`", "error no-endpoint 127.0.0.1:26001: worker web of project b (/b) is up"}},
		{name: "unknown", claims: []string{"a 127.0.0.1:8080 unknown busy", "b 127.0.0.1:26001 unknown stale"}},
		{name: "privileged", claims: []string{"a 127.0.0.1:80 reserved ordinary", "b 127.0.0.1:81 reserved", "c 127.0.0.1:82 reserved ordinary up busy", "d 127.0.0.1:1024 reserved ordinary"}, published: []string{"c 127.0.0.1:82"},
			want: []string{"error privileged 127.0.0.1:80: only root may listen on: ip_unprivileged_port_start=80`"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := PortsSeen{UID: 1000, Unprivileged: 1024, Listeners: tt.listeners}
			for _, c := range tt.claims {
				s.Claims = append(s.Claims, claimOf(t, c))
			}
			for _, p := range tt.published {
				s.Published = append(s.Published, at(p))
			}
			for _, p := range tt.foreign {
				s.Foreign = append(s.Foreign, at(p))
			}
			got := Ports(s)
			if len(got) != len(tt.want) {
				t.Fatalf("got %+v", got)
			}
			for i, f := range got {
				head := fmt.Sprintf("%s %s %s", f.Level, f.Name, f.Address)
				if f.Fixable {
					head += " fixable"
				}
				parts := strings.Split(tt.want[i], ": ")
				if d := cmp.Diff(parts[0], head); d != "" {
					t.Error(d)
				}
				for _, part := range parts[1:] {
					if !strings.Contains(f.Text+"\n"+f.Do, part) {
						t.Errorf("%q isn't in %s\n%s", part, f.Text, f.Do)
					}
				}
				if f.Do == "" || f.Fixable != (f.Lease != nil) {
					t.Errorf("got %+v", f)
				}
			}
		})
	}
	// Labels of containers can't make another command of the advice.
	for _, s := range []PortsSeen{
		{Foreign: []PublishedAt{{Project: "x; id", At: netip.MustParseAddrPort("0.0.0.0:1")}}},
		{Published: []PublishedAt{{Project: "x; id", At: netip.MustParseAddrPort("0.0.0.0:1")}}},
	} {
		if got := Ports(s); len(got) != 1 || !strings.Contains(got[0].Do, " -p 'x; id' ") {
			t.Errorf("got %+v", got)
		}
	}
	got := Ports(PortsSeen{Registry: &ports.FileError{Path: "/p", Err: errors.New("/p is spoiled"), Do: "rm /p"}})
	if len(got) != 1 || got[0].Name != PortRegistry || got[0].Level != Error || got[0].Do != "if it is yours: `rm /p`" {
		t.Errorf("got %+v", got)
	}
}
