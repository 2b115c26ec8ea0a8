package namespace

import "testing"

// With a profile of its own, the program may do what AppArmor denies others.
func TestHasProfile(t *testing.T) {
	for label, want := range map[string]bool{
		"": false, "unconfined\n": false, "unconfined\x00": false, "workshop (unconfined)\n": true, "workshop (enforce)": true, "docker-default (enforce)\n": true,
	} {
		if got := hasProfile(label); got != want {
			t.Errorf("%q: got %v, want %v", label, got, want)
		}
	}
}
