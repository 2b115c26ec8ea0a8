package firewall

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/plainjson"
)

// MaxPolicyBytes is the largest policy file that [ParsePolicy] accepts.
const MaxPolicyBytes = 16 << 20

// Further limits of a policy file. All are far above what a person writes, and bound
// the cost of a broken file (B60).
const (
	maxRooms   = 1024
	maxRules   = 100_000 // in one room, allow and deny together
	maxPublish = 4096
)

// MaxRoots is how many certificates [Policy.Roots] may have, MaxRoot how large each may
// be, in bytes.
const (
	MaxRoots = 2048
	MaxRoot  = 32 << 10
)

// MaxResolvers is how many upstream resolvers one guard may have.
const MaxResolvers = 16

// EncodePolicy encodes the policy as JSON: indented, rooms by name, one rule a line so
// that a change is a line in a diff. The output is deterministic. It panics if the
// policy can't be encoded, which only an invalid Mode or port range causes.
func EncodePolicy(p *Policy) []byte {
	q := *p
	q.Version = PolicyVersion
	q.Rooms = slices.Clone(p.Rooms)
	sort.SliceStable(q.Rooms, func(i, j int) bool { return q.Rooms[i].Room < q.Rooms[j].Room })
	if q.Rooms == nil {
		q.Rooms = []RoomPolicy{}
	}
	var b bytes.Buffer
	b.WriteString("{\n")
	field(&b, "  ", "version", q.Version, true)
	field(&b, "  ", "workshop", q.Workshop, true)
	if len(q.Resolvers) > 0 {
		field(&b, "  ", "resolvers", q.Resolvers, true)
	}
	if q.Proxy != "" {
		field(&b, "  ", "proxy", q.Proxy, true)
	}
	if q.ProxyCredential != "" {
		field(&b, "  ", "proxy_credential", q.ProxyCredential, true)
	}
	list(&b, "  ", "roots", q.Roots, len(q.Roots) > 0)
	list(&b, "  ", "publish", q.Publish, len(q.Publish) > 0)
	b.WriteString("  \"rooms\": [")
	for i := range q.Rooms {
		encodeRoom(&b, &q.Rooms[i])
		if i < len(q.Rooms)-1 {
			b.WriteByte(',')
		} else {
			b.WriteString("\n  ")
		}
	}
	b.WriteString("]\n}\n")
	return b.Bytes()
}

func encodeRoom(b *bytes.Buffer, r *RoomPolicy) {
	b.WriteString("\n    {\n")
	field(b, "      ", "room", r.Room, true)
	field(b, "      ", "mode", r.Mode, true)
	list(b, "      ", "allow", r.Allow, len(r.Allow) > 0)
	list(b, "      ", "deny", r.Deny, len(r.Deny) > 0)
	workers := r.Workers
	if workers == nil {
		workers = []string{}
	}
	field(b, "      ", "workers", workers, false)
	b.WriteString("    }")
}

func field(b *bytes.Buffer, indent, key string, v any, more bool) {
	fmt.Fprintf(b, "%s%q: %s", indent, key, marshal(v))
	if more {
		b.WriteByte(',')
	}
	b.WriteByte('\n')
}

func list[T any](b *bytes.Buffer, indent, key string, v []T, present bool) {
	if !present {
		return
	}
	fmt.Fprintf(b, "%s%q: [\n", indent, key)
	for i := range v {
		b.WriteString(indent + "  ")
		b.Write(marshal(v[i]))
		if i < len(v)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString(indent + "],\n")
}

func marshal(v any) []byte {
	b, err := plainjson.Marshal(v)
	if err != nil {
		panic("firewall: the policy can't be encoded: " + err.Error())
	}
	return b
}

// ParsePolicy parses the output of EncodePolicy. Unknown and duplicate keys, other
// versions, trailing data and rules that can't have been compiled are errors: a guard
// that doesn't understand its policy serves nobody. Templates are not expanded, see
// [Expand].
func ParsePolicy(data []byte) (*Policy, error) {
	if len(data) > MaxPolicyBytes {
		return nil, fmt.Errorf("policy: larger than %d MiB", MaxPolicyBytes>>20)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	p := &Policy{}
	if err := d.Decode(p); err != nil {
		// The version first, so that an older program doesn't complain about a new key.
		var v struct{ Version int }
		if json.Unmarshal(data, &v) == nil && v.Version != PolicyVersion {
			return nil, versionError(v.Version)
		}
		return nil, fmt.Errorf("policy: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("policy: trailing data after the policy")
	}
	if err := uniqueKeys(data); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

func versionError(v int) error {
	return fmt.Errorf("policy: version %d; this program reads version %d only: compile and start the workshop with one version of it", v, PolicyVersion)
}

// check checks what every policy must fulfil, expanded or not.
func (p *Policy) check() error {
	if p.Version != PolicyVersion {
		return versionError(p.Version)
	}
	if len(p.Rooms) > maxRooms || len(p.Publish) > maxPublish || len(p.Resolvers) > MaxResolvers {
		return fmt.Errorf("more than %d rooms, %d published ports or %d resolvers", maxRooms, maxPublish, MaxResolvers)
	}
	if len(p.Roots) > MaxRoots || slices.ContainsFunc(p.Roots, func(c []byte) bool { return len(c) > MaxRoot }) {
		return fmt.Errorf("more than %d roots, or one of more than %d KiB", MaxRoots, MaxRoot>>10)
	}
	rooms := make(map[string]bool, len(p.Rooms))
	for i := range p.Rooms {
		r := &p.Rooms[i]
		if !ValidRoomName(r.Room) {
			return fmt.Errorf("room %q: the name must be %s", clip.Bytes(r.Room, shown), roomNameForm)
		}
		if rooms[r.Room] {
			return fmt.Errorf("duplicate room %q", r.Room)
		}
		rooms[r.Room] = true
		if len(r.Allow)+len(r.Deny) > maxRules {
			return fmt.Errorf("room %q: more than %d rules", r.Room, maxRules)
		}
		if n := len(RedirectPorts(*r)); n > MaxRedirects {
			return fmt.Errorf("room %q: %d port ranges besides 80 and 443, at most %d are possible", r.Room, n, MaxRedirects)
		}
		if n := r.Budgets(); n > MaxBudgets {
			return fmt.Errorf("room %q: %d lines with an upload budget, at most %d", r.Room, n, MaxBudgets)
		}
		for j, rule := range r.Allow {
			if err := rule.check(false); err != nil {
				return fmt.Errorf("room %q: allow[%d] %s: %w", r.Room, j, clip.Bytes(rule.Target(), shown), err)
			}
		}
		for j, rule := range r.Deny {
			if err := rule.check(true); err != nil {
				return fmt.Errorf("room %q: deny[%d] %s: %w", r.Room, j, clip.Bytes(rule.Target(), shown), err)
			}
		}
	}
	if err := p.checkEndpoints(); err != nil {
		return err
	}
	listens := make(map[uint16]bool, len(p.Publish))
	for i, x := range p.Publish {
		switch {
		case !rooms[x.Room]:
			return fmt.Errorf("publish[%d]: there is no room %q", i, clip.Bytes(x.Room, shown))
		case x.Listen == 0 || x.Target == 0:
			return fmt.Errorf("publish[%d]: listen and target must be 1 to 65535", i)
		case listens[x.Listen]:
			return fmt.Errorf("publish[%d]: port %d is published twice", i, x.Listen)
		}
		listens[x.Listen] = true
	}
	for _, s := range p.Resolvers {
		if !strings.Contains(s, "$") {
			if _, err := ParseResolver(s); err != nil {
				return err
			}
		}
	}
	if !strings.Contains(p.Proxy, "$") {
		if err := checkProxy(p.Proxy); err != nil {
			return err
		}
	}
	return p.checkProxyCredential()
}

const roomNameForm = "1 to 128 lower-case letters, digits, hyphens, dots and underscores, beginning with a letter or digit"

// ValidRoomName reports whether s can be the name of a room: it is part of a
// path and of a command line, so nothing else is accepted.
func ValidRoomName(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case i > 0 && (c == '-' || c == '_' || c == '.'):
		default:
			return false
		}
	}
	return true
}

// Digest identifies a policy file: the SHA-256 of its content, in hexadecimal.
func Digest(p *Policy) string {
	sum := sha256.Sum256(EncodePolicy(p))
	return hex.EncodeToString(sum[:])
}
