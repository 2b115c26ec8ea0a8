package audit_test

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/session/audit"
)

func open(t testing.TB, path string, secrets ...string) *audit.Log {
	t.Helper()
	l, err := audit.Open(path, "project", secrets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// written writes one event and gives its line.
func written(t testing.TB, e audit.Event, secrets ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state", "audit.jsonl")
	if err := open(t, path, secrets...).Write(e); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	path := filepath.Join(dir, "audit.jsonl")
	l := open(t, path)
	code := 3
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600))
	if err := l.Write(audit.Event{Time: at, Event: "done", ID: "1", Worker: "w", Tool: "shell", Arguments: json.RawMessage(`{"command":"a\nb <c>","n":1e3}`), ExitCode: &code}); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(audit.Event{Event: "call"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-01-02T02:04:05.000000006Z","event":"done","id":"1","project":"project","worker":"w","tool":"shell","arguments":{"command":"a\nb <c>","n":1e3},"exit_code":3}` + "\n"
	if !strings.HasPrefix(string(data), want) || strings.Count(string(data), "\n") != 2 {
		t.Errorf("%s\nwant\n%s", data, want)
	}
	for p, mode := range map[string]os.FileMode{path: 0o600, dir: 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", p, info.Mode(), err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(audit.Event{}); err == nil {
		t.Error("a closed log takes a line")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "x"), link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{link, dir} {
		if _, err := audit.Open(p, "p", nil); err == nil {
			t.Errorf("%s is opened", p)
		}
	}
	// One that others may read is closed to them.
	open := filepath.Join(dir, "open")
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(open, "p", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, _ := os.Stat(open); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
}

const secret = "pa55/w+r'd?<x>\"é&z"

// forms are how a secret is sent along.
func forms(s string) map[string]string {
	quoted, _ := json.Marshal(s)
	twice, _ := json.Marshal(string(quoted))
	return map[string]string{
		"plain": s, "JSON": string(quoted), "JSON in JSON": string(twice), "query": url.QueryEscape(s), "path": url.PathEscape(s),
		"base64": base64.StdEncoding.EncodeToString([]byte(s)), "base64url": base64.RawURLEncoding.EncodeToString([]byte(s)),
		"basic": base64.StdEncoding.EncodeToString([]byte("user:" + s)), "basic 2": base64.StdEncoding.EncodeToString([]byte("users:" + s + "\n")),
		"basic 3": base64.StdEncoding.EncodeToString([]byte("me:" + s + "xx")), "hex": hex.EncodeToString([]byte(s)), "shell": shellquote.Quote(s),
	}
}

func TestSecrets(t *testing.T) {
	for name, form := range forms(secret) {
		args, _ := json.Marshal(map[string]any{"command": "curl -d '" + form + "' x", "list": []any{form, map[string]any{form: 1}}})
		line := written(t, audit.Event{
			Event: "call", Arguments: args, Why: "x " + form, Error: form + ".", Client: form, Chain: []string{form},
		}, secret, "abc")
		for other, f := range forms(secret) {
			f = strings.Trim(f, `"=`)
			if f = f[:len(f)-1]; strings.Contains(line, f) { // the last character of base64 has bits of it
				t.Errorf("%s is there as %s: %s", name, other, line)
			}
		}
		if n := strings.Count(line, audit.Replacement); n < 7 {
			t.Errorf("%s: %d replacements: %s", name, n, line)
		}
	}
	if line := written(t, audit.Event{Error: "abcd1234EXTRA"}, "abcd1234", "abcd1234EXTRA"); strings.Contains(line, "EXTRA") {
		t.Error(line)
	}
	key := "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n"
	line := written(t, audit.Event{Error: "-----BEGIN KEY-----\nkqhkiG9w0BAQEF and abc", Arguments: json.RawMessage(`{"n":123456,"m":1234567}`)}, key, "abc", "123456")
	if strings.Contains(line, "kqh") || !strings.Contains(line, "BEGIN KEY") || !strings.Contains(line, "abc") || strings.Contains(line, "123456,") {
		t.Error(line)
	}
}

// What names itself a credential isn't kept either, whatever its value is.
func TestCredentials(t *testing.T) {
	for _, text := range []string{
		"Authorization: Bearer XYZZY123", "authorization: XYZZY123", `"Authorization":"Basic XYZZY123="`, "Proxy-Authorization: token XYZZY123",
		"curl -H 'x: bearer XYZZY123'", "GITHUB_TOKEN=XYZZY123 gh", "export AWS_SECRET_ACCESS_KEY='XYZZY123'", "--password=XYZZY123", "api-key: XYZZY123",
		"?access_token=XYZZY123&a=b", "git clone https://me:XYZZY123@example.com/x", `{"client_secret": "XYZZY123"}`,
	} {
		args, _ := json.Marshal(map[string]string{"command": text})
		line := written(t, audit.Event{Error: text, Arguments: args})
		if strings.Contains(line, "XYZZY") || strings.Count(line, audit.Replacement) < 2 {
			t.Errorf("%s: %s", text, line)
		}
	}
	line := written(t, audit.Event{Arguments: json.RawMessage(`{"env":{"GH_TOKEN":"XYZZY","Authorization":"XYZZY","PATH":"/bin"},"max_tokens":5,"key":"k"}`)})
	if strings.Contains(line, "XYZZY") || !strings.Contains(line, `"PATH":"/bin"`) || !strings.Contains(line, `"max_tokens":5,`) && !strings.Contains(line, `"max_tokens":5}`) {
		t.Error(line)
	}
	for _, text := range []string{"tokenize the text", "a key: of the piano is white, keys", "https://example.com:80/x@y", "basic things"} {
		if line := written(t, audit.Event{Error: text}); strings.Contains(line, audit.Replacement) {
			t.Errorf("%s: %s", text, line)
		}
	}
}

func TestArgumentsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 5000)
	many := strings.Repeat(`"",`, 1<<20)
	for name, args := range map[string]string{
		"long": `{"content":"` + long + `","path":"x"}`, "many": `[` + many + `""]`, "numbers": "[" + strings.Repeat("1,", 1<<20) + "1]",
		"keys": `{"` + strings.Repeat("k", 1<<20) + `":1}`, "no JSON": strings.Repeat("{", 1<<20), "deep": strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"two": `{} {"a":"b"}`, "number": strings.Repeat("1", 1<<20), "texts": `["` + strings.Repeat(strings.Repeat("x", 900)+`","`, 1000) + `"]`,
	} {
		line := written(t, audit.Event{Arguments: json.RawMessage(args)})
		if len(line) > 100<<10 || !json.Valid([]byte(line)) {
			t.Errorf("%s: %d bytes", name, len(line))
		}
		if name == "long" && (!strings.Contains(line, "[… 1024 of 10000 bytes]") || !strings.Contains(line, `"path":"x"`)) {
			t.Error(line)
		}
	}
	// What is cut was looked through as a whole.
	line := written(t, audit.Event{Arguments: json.RawMessage(`{"c":"` + strings.Repeat("x", 1020) + `SECRETVALUE"}`)}, "SECRETVALUE")
	if strings.Contains(line, "SECR") {
		t.Error(line)
	}
}

// Two logs of one file, as two processes have them: no line is lost or mixed,
// and the files stay as many and as large as they may be.
func TestRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	text := strings.Repeat("x", 900)
	const perLog = 9000 // about 10 MB each
	var wg sync.WaitGroup
	for i := range 2 {
		l := open(t, path)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range perLog {
				if err := l.Write(audit.Event{Event: "call", ID: fmt.Sprintf("%d-%d", i, n), Error: text}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	seen := map[string]bool{}
	files, _ := filepath.Glob(path + "*")
	for _, p := range files {
		if strings.HasSuffix(p, ".lock") {
			continue
		}
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if info, _ := f.Stat(); info.Size() > audit.MaxSize+10<<10 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, %v", p, info.Size(), info.Mode())
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			var e audit.Event
			if err := json.Unmarshal(s.Bytes(), &e); err != nil || seen[e.ID] {
				t.Fatalf("%v: %.100s", err, s.Text())
			}
			seen[e.ID] = true
		}
	}
	if len(seen) != 2*perLog {
		t.Errorf("%d lines of %d", len(seen), 2*perLog)
	}
}

// Many that find the file full at once: one of them rotates.
func TestRotateOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	big := make([]byte, audit.MaxSize)
	for range 10 {
		if err := os.WriteFile(path, big, 0o600); err != nil {
			t.Fatal(err)
		}
		os.Remove(path + ".1")
		start := make(chan struct{})
		var wg sync.WaitGroup
		for range 8 {
			l := open(t, path)
			wg.Add(1)
			go func() {
				defer wg.Done()
				<-start
				if err := l.Write(audit.Event{}); err != nil {
					t.Error(err)
				}
			}()
		}
		close(start)
		wg.Wait()
		if _, err := os.Stat(path + ".2"); err == nil {
			t.Fatal("rotated twice")
		}
	}
}

func TestRotateKeepsThree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	big := make([]byte, audit.MaxSize)
	for i := range 5 {
		if err := os.WriteFile(path, big, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(t, path).Write(audit.Event{ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(path + "*")
	if len(files) != audit.MaxFiles+1 { // and the lock
		t.Error(files)
	}
	// One that is gone is made anew.
	l := open(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(audit.Event{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// A secret in any text never enters the line, in no form that is looked for; the
// line is JSON of a bounded length.
func FuzzRedact(f *testing.F) {
	f.Add("hunter22", "a", "b", `{"x":"`, `"}`)
	f.Add(secret, "Authorization: Bearer ", "", `["`, `"]`)
	f.Add("a\nb\nlong line of it\n", "", "x", "", "")
	f.Fuzz(func(t *testing.T, secret, before, after, left, right string) {
		if len(secret) < audit.MinSecret || len(secret) > 200 {
			return
		}
		// Parts of what we write ourselves, and what consists of it, are no secret.
		frame := `{"time":"0001-01-01T00:00:00Z","event":"","id":"","project":"project","worker":"","tool":"","chain":[],"client":"","arguments":"","error":"why":"[… 1024 of 10000 bytes]` + audit.Replacement + "unreadable"
		for _, part := range []string{secret, strings.TrimSpace(secret)} {
			if len(part) < audit.MinSecret || strings.Contains(frame, part) || strings.Trim(part, "0123456789[]… secrtofbyx\":,{}\\") == "" {
				return
			}
		}
		line := written(t, audit.Event{Error: before + secret + after, Why: url.QueryEscape(before + secret), Arguments: json.RawMessage(left + secret + right)}, secret)
		if !json.Valid([]byte(line)) || len(line) > 200<<10+8*(len(before)+len(after)) {
			t.Fatalf("%d bytes, valid %v", len(line), json.Valid([]byte(line)))
		}
		var e audit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(before+after, secret[:1]) || strings.Contains(secret, "secret") || strings.ContainsAny(secret, "\ufffd") {
			return // it may come together anew
		}
		for _, text := range []string{e.Error, e.Why, string(e.Arguments)} {
			if strings.Contains(text, secret) {
				t.Fatalf("%q is in %q", secret, text)
			}
		}
	})
}

// Texts that a client makes up don't push the lines of other calls out of the
// files, and no argument hides another one.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	line := written(t, audit.Event{Event: "refused", Tool: long, Worker: long, Error: long, Why: long, Client: long})
	if len(line) > 16<<10 || !json.Valid([]byte(line)) {
		t.Errorf("%d bytes: %.200s", len(line), line)
	}
	key := strings.Repeat("k", 2000)
	line = written(t, audit.Event{Event: "call", Arguments: json.RawMessage(`{"` + key + `a":"first","` + key + `b":"second"}`)})
	if !strings.Contains(line, "first") || !strings.Contains(line, "second") {
		t.Error(line)
	}
}

func TestSecretsOfOtherPrograms(t *testing.T) {
	secret := "p!a s(s)/ö&w*'=:%"
	for name, text := range map[string]string{
		"encodeURIComponent": "p!a%20s(s)%2F%C3%B6%26w*'%3D%3A%25",
		"Python's quote":     "p%21a%20s%28s%29/%C3%B6%26w%2A%27%3D%3A%25",
		"small digits":       "p%21a+s%28s%29%2f%c3%b6%26w%2a%27%3d%3a%25",
		"hexadecimal":        strings.ToUpper(hex.EncodeToString([]byte(secret))),
	} {
		line := written(t, audit.Event{Event: "call", Arguments: json.RawMessage(`{"q":` + fmt.Sprintf("%q", "x "+text+" y") + `}`)}, secret)
		if !strings.Contains(line, "x [secret] y") {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// A terminal does nothing with a line, and shows all of it.
func TestLinesArePlain(t *testing.T) {
	text := "a\u009b2J\u202eb\u200b\U000e0041\x7f é 漢 \U0001f600"
	args, _ := json.Marshal(map[string]string{"command": text})
	line := written(t, audit.Event{Event: "call", Client: text, Arguments: args})
	if strings.ContainsAny(line, "\u009b\u202e\u200b\U000e0041\x7f") || !strings.Contains(line, "é 漢 \U0001f600") {
		t.Errorf("%q", line)
	}
	var e audit.Event
	var got map[string]string
	if json.Unmarshal([]byte(line), &e) != nil || json.Unmarshal(e.Arguments, &got) != nil || got["command"] != text || e.Client != text {
		t.Errorf("%q is read as %q", line, got)
	}
}
