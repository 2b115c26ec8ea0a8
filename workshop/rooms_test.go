package workshop

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRooms(t *testing.T) {
	const head = `workshop:
  name: w
  container:
    image: i:1
    network: {mode: restricted, allow: [a.example.org, preset: go]}
  workers:
`
	files := map[string]string{"workers/a.md": plainWorker, "workers/b.md": plainWorker, "workers/c.md": plainWorker, "workers/d.md": plainWorker}
	for _, tt := range []struct {
		name, workers string
		want          []Room
	}{
		{"one policy", "    - a\n    - b\n", []Room{{"room", []string{"a", "b"}}}},
		{"none has no room", "    - {name: a, container: {network: none}}\n    - b\n", []Room{{"room", []string{"b"}}}},
		{"two policies", "    - a\n    - {name: b, container: {network: {allow: []}}}\n    - c\n    - {name: d, container: {network: {mode: restricted, allow: []}}}\n",
			[]Room{{"room-a", []string{"a", "c"}}, {"room-b", []string{"b", "d"}}}},
		{"own", "    - a\n    - {name: b, container: {network: {room: own}}}\n    - c\n", []Room{{"room-a", []string{"a", "c"}}, {"room-b", []string{"b"}}}},
		{"a kernel of its own", "    - a\n    - {name: b, container: {kernel: sandboxed}}\n    - c\n    - {name: d, container: {kernel: vm}}\n",
			[]Room{{"room-a", []string{"a", "c"}}, {"room-b", []string{"b"}}, {"room-d", []string{"d"}}}},
		{"the order and the place of rules don't matter", "    - a\n    - {name: b, container: {network: {allow: [preset: go, a.example.org]}}}\n", []Room{{"room", []string{"a", "b"}}}},
		{"a budget does: workers of one room share it (B40)", "    - a\n    - {name: b, container: {network: {allow: [{host: a.example.org, upload: 5M/h}]}}}\n    - {name: c, container: {network: {allow: [{host: a.example.org, upload: 4M/h}]}}}\n    - {name: d, container: {network: {allow: [a.example.org]}}}\n",
			[]Room{{"room-a", []string{"a"}}, {"room-b", []string{"b"}}, {"room-c", []string{"c"}}, {"room-d", []string{"d"}}}},
		{"a deny does", "    - a\n    - {name: b, container: {network: {deny: [b.example.org]}}}\n", []Room{{"room-a", []string{"a"}}, {"room-b", []string{"b"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, diags := Load(t.Context(), project(head+tt.workers, files), "workshop.yaml", Options{})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(tt.want, Rooms(w)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPorts(t *testing.T) {
	const head = "workshop:\n  name: w\n  container:\n    image: i:1\n    network: %s\n%s  workers:\n"
	files := map[string]string{"workers/a.md": plainWorker, "workers/b.md": plainWorker}
	for _, tt := range []struct {
		name, network, ports, workers string
		want                          []string
		given                         string
	}{
		{name: "to the only worker", network: "restricted", ports: "    ports: [\"8080:8080\"]\n", workers: "    - a\n", given: "a 8080"},
		{name: "to none of two", network: "restricted", ports: "    ports: [\"8080:8080\"]\n", workers: "    - a\n    - b\n",
			want: []string{"6: ports of the workshop belong to one worker, and it has 2: a, b"}},
		{name: "in two places", network: "restricted", ports: "    ports: [\"8080:8080\"]\n", workers: "    - {name: a, container: {ports: [\"8081:8081\"]}}\n",
			want: []string{"6: ports are given both by the workshop and by its only worker [8]"}},
		{name: "in a worker", network: "restricted", workers: "    - {name: a, container: {ports: [\"8080:8080\"]}}\n    - b\n", given: "a 8080"},
		{name: "one target in one room", network: "restricted", workers: "    - {name: a, container: {ports: [\"8080:8080\"]}}\n    - {name: b, container: {ports: [\"8081:8080\"]}}\n",
			want: []string{"8: a and b share a room and can't both listen on port 8080 [7]"}},
		{name: "one target in two rooms", network: "restricted", workers: "    - {name: a, container: {ports: [\"8080:8080\"]}}\n    - {name: b, container: {network: {room: own}, ports: [\"8081:8080\"]}}\n", given: "a 8080 b 8081"},
		{name: "one port of the host", network: "restricted", workers: "    - {name: a, container: {ports: [\"8080:8080\"]}}\n    - {name: b, container: {ports: [\"8080:8081\"]}}\n",
			want: []string{"8: port 8080 of the host is published by a already [7]"}},
		{name: "without a network", network: "none", ports: "    ports: [\"8080:8080\"]\n", workers: "    - a\n",
			want: []string{"6: a publishes port 8080 but its network is none"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, diags := Load(t.Context(), project(fmt.Sprintf(head, tt.network, tt.ports)+tt.workers, files), "workshop.yaml", Options{})
			if diff := cmp.Diff(tt.want, places(diags)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(tt.want) > 0 {
				return
			}
			got := ""
			for _, wk := range w.Workers {
				for _, p := range wk.Container.Ports {
					got += fmt.Sprint(" ", wk.Name, " ", p.Published.V)
				}
			}
			if got != " "+tt.given {
				t.Errorf("got%s, want %s", got, tt.given)
			}
		})
	}
}
