package worker

import (
	"strings"
	"testing"
	"time"
)

// TestDepthOfSchemas: B60: a schema that only nests costs no more than its length.
func TestDepthOfSchemas(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(strings.Repeat(`{"not":`, n-1) + `{"const": "{[{[\"{["}` + strings.Repeat("}", n-1))
	}
	begin := time.Now()
	if _, err := new(Schemas).Compile("s.json", nested(2000)); err == nil || !strings.Contains(err.Error(), "nested deeper than 64") {
		t.Errorf("got %v", err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	if _, err := new(Schemas).Compile("s.json", nested(maxSchemaDepth)); err != nil {
		t.Error(err)
	}
	if _, err := new(Schemas).File("s.yaml", []byte(strings.Repeat("{not: ", 65)+"{}"+strings.Repeat("}", 65))); err == nil {
		t.Error("as YAML it is taken")
	}
}
