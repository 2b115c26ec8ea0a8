package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWorkOfSchemas: B60: schemas cost no more than a bound, however many workers
// name them.
func TestWorkOfSchemas(t *testing.T) {
	pattern := strings.Repeat(`\\pL{1000}`, 20)
	var properties []string
	for i := range 1000 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"pattern":"%s"}`, i, pattern))
	}
	begin := time.Now()
	for want, schema := range map[string]string{
		"bytes of patterns":  `{"properties":{` + strings.Join(properties, ",") + `}}`,
		"steps of patterns":  `{"patternProperties":{"` + pattern + `":{},"((x{30}){30}){900}":{},"\\pL{900}\\pL{900}a{999}":{},"` + pattern + `a":{},"` + pattern + `b":{},"` + pattern + `c":{},"` + pattern + `d":{},"` + pattern + `e":{}}}`,
		"values, more than":  `{"allOf":[` + strings.Repeat("{},", 60_000) + `{}]}`,
		"of places of":       strings.Repeat(`{"$defs":{"`+strings.Repeat("k", 900)+`":`, 25) + `{"enum":[` + strings.Repeat("1,", 10_000) + `1]}` + strings.Repeat("}}", 25),
		"bytes, more than 1": "",
	} {
		var s Schemas
		var err error
		if schema != "" {
			_, err = s.Compile("s.json", []byte(schema))
		} else {
			for i := 0; i < 10 && err == nil; i++ { // other ones
				_, err = s.Compile("s.json", fmt.Appendf(nil, `{"description":"%d%s"}`, i, strings.Repeat("x", 200_000)))
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	var s Schemas
	data := []byte(`{"properties":{"a":{"pattern":"^[a-z]{1,64}$"}},"description":"` + strings.Repeat("x", 100_000) + `"}`)
	for range 100 { // the same one
		if _, err := s.Compile("s.json", data); err != nil {
			t.Fatal(err)
		}
	}
	if s.spent.bytes != len(data) || s.spent.parts != 4 || s.spent.patterns != 13 || s.spent.steps < 64 || s.spent.steps > 200 {
		t.Errorf("counted %+v", s.spent)
	}
}
