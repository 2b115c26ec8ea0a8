package workshop

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/dotenv"
)

var envFiles = []string{
	"A=b\n", "A=b", "A", "A\nSET\n", "export A=b", "export\nA=b", "export A\n", "\ufeffA=b\n", "A: b\n", "A = b # c\n", "# c\nA=b\n#", "A=\nB=x\n", "A=\n\n'x'\n",
	"A='x' B=\"$A$A\"\n", "A=\"x\ny\" # c\nB=z\n", "A='it\\'s' B=1\n", `A="\"$SET\\"` + "\n", `A="\\" B=1`, "A=\"open\nB=1\n", "A='x'y=z\n", "A.b-c[1]=x\n", "A b=c\n", "é=1\n", "-\n=x\n",
	"A=${SET}$SET${NO}${NO:-$SET}${NO-x}\n", "A=1\nA=${A}2\nB=$A\n", "A=${SET:?no}\nB=${NO:?no}\n", "A=${SET:+$SET}\n", "A=$$SET ${\n", "A=\u00a0'x'\nB=\u0085y\n", "\u2003A=1\n", "A=\v'x'\n", "A=x\r\nB=\"y\"\r\n",
}

// FuzzEnvFile: any text as a file of variables: no panic, bounded time and size,
// and what compose-go makes of it in one go.
func FuzzEnvFile(f *testing.F) {
	for _, s := range envFiles {
		f.Add(s)
	}
	lookup := func(name string) (string, bool) { return "value", name == "SET" }
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxEnvFileSize {
			return
		}
		begin := time.Now()
		got, err := parseEnv([]byte(text), lookup)
		if d := time.Since(begin); d > 5*time.Second {
			t.Fatalf("took %v", d)
		}
		if errors.Is(err, errEnvValue) || errors.Is(err, errEnvWork) {
			return
		}
		size := 0
		for _, v := range got {
			size += len(v)
		}
		if size > maxEnvValues {
			t.Errorf("the values have %d bytes", size)
		}
		if strings.Count(text, "$") > 12 {
			return // compose-go has no bound
		}
		want, wantErr := dotenv.ParseWithLookup(bytes.NewReader([]byte(text)), lookup)
		if (err == nil) != (wantErr == nil) || err == nil && !maps.Equal(got, want) {
			t.Errorf("got %q, %v; compose-go has %q, %v", got, err, want, wantErr)
		}
	})
}
