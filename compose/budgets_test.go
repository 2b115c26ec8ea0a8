package compose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// More upload budgets than a room keeps over a crash of the guard are refused
// before anything starts.
func TestBudgetsOfARoom(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines int
		want  string
	}{
		{"as many as there may be", firewall.MaxBudgets, ""},
		{"one more", firewall.MaxBudgets + 1, "513 lines with an upload budget, at most 512"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := sample(t, 1)
			allow := &w.Workers[0].Container.Network.Allow
			*allow = nil
			for i := range tt.lines {
				host, err := firewall.ParseHostPattern(fmt.Sprintf("host-%d.example.org", i))
				if err != nil {
					t.Fatal(err)
				}
				*allow = append(*allow, firewall.Rule{Host: host, Ports: firewall.DefaultAllowPorts(), Upload: firewall.Budget{Bytes: 1, Per: time.Hour}})
			}
			_, err := Compile(w)
			if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
