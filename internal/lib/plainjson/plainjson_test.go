package plainjson

import (
	"math"
	"testing"
)

func TestMarshal(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    any
		want string
	}{
		{"not escaped", map[string]string{"b": "<&>", "a": "\n"}, `{"a":"\n","b":"<&>"}`},
		{"not JSON", math.Inf(1), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Marshal(tt.v)
			if string(got) != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
