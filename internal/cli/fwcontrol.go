package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/guard/control"
)

// roomLines are the lines that a room goes by.
type roomLines struct {
	control.RoomState
	// known is false where the workshop file isn't what the guard has any more:
	// then only live lines are here.
	known       bool
	allow, deny []firewall.Rule
	live        []firewall.Live
}

// roomsOf gives the rooms that a change is about: the worker's, or all.
func (a *program) roomsOf(ctx context.Context, t app.ProjectRef, s control.State, worker string) []roomLines {
	var rooms []roomLines
	policy := a.filePolicy(ctx, t, s.Digest)
	for _, r := range s.Rooms {
		if worker != "" && !slices.Contains(r.Workers, worker) {
			continue
		}
		room := roomLines{RoomState: r}
		for _, l := range s.Live {
			if l.Room == "" || l.Room == r.Room {
				room.live = append(room.live, l)
			}
		}
		if policy != nil {
			room.known = true
			room.addLines(policy)
		}
		rooms = append(rooms, room)
	}
	return rooms
}

func (r *roomLines) addLines(p *firewall.Policy) {
	for i := range p.Rooms {
		if p.Rooms[i].Room == r.Room {
			r.allow, r.deny = filled(p.Rooms[i].Allow), filled(p.Rooms[i].Deny)
		}
	}
}

// filePolicy is the policy of the workshop file, if it is the one with that
// digest; else nil.
func (a *program) filePolicy(ctx context.Context, t app.ProjectRef, digest string) *firewall.Policy {
	w := a.QuietWorkshop(ctx, t)
	if w == nil {
		return nil
	}
	c, err := compose.Compile(w)
	if err != nil || c.Policy == nil || firewall.Digest(c.Policy) != digest {
		return nil
	}
	return c.Policy
}

// filled puts the values of variables into lines, as the guard does.
func filled(rules []firewall.Rule) []firewall.Rule {
	out := slices.Clone(rules)
	for i := range out {
		r := &out[i]
		if r.Template == "" {
			continue
		}
		r.Template = ""
		if p, ok := addressRange(r.Value); ok && strings.Contains(r.Value, "/") {
			r.CIDR = p
			continue
		}
		// A pattern for which any_tenant is needed comes with its error.
		r.Host, _ = firewall.ParseHostPattern(r.Value)
	}
	return out
}

// lengthText is a duration as a person writes it: "30m", "1h30m".
func lengthText(d time.Duration) string {
	s := d.Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
