package firewall

import "testing"

// TestLearningOpensNoSingleLabel: names without a dot belong to the room's
// surroundings, and learning opens none, by look-up or by name (D13).
func TestLearningOpensNoSingleLabel(t *testing.T) {
	m := RoomPolicy{Mode: Restricted, Learn: true}.Compile()
	for s, want := range map[string]bool{"example.org": true, "guard": false, "localhost": false} {
		n, err := ParseName(s)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name(n, 443).Allowed != want || m.Resolvable(n).Allowed != want {
			t.Errorf("%s: %+v, %+v", s, m.Name(n, 443), m.Resolvable(n))
		}
	}
}
