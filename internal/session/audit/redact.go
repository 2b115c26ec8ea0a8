package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// MinSecret is the length, in bytes, of the shortest value that is looked
	// for: a shorter one is in any text.
	MinSecret = 4
	// maxText is how much of a text of the arguments is kept, in bytes.
	maxText = 1 << 10
	// maxArguments is how much of arguments that are no JSON is kept, and of all
	// texts together.
	maxArguments = 16 << 10
	// maxName is how much is kept of each text that isn't an argument: a name that
	// a client made up must not push other lines out of the files.
	maxName = 2 << 10
	// Replacement is written in place of a secret.
	Replacement = "[secret]"
)

// redactor replaces secrets, in the forms that they are sent in.
type redactor struct{ forms []string } // the longest first

// newRedactor collects the forms of the values: as they are, each of several
// lines alone, as JSON, URLs and base64 write them, in hexadecimal.
func newRedactor(values []string) *redactor {
	r := &redactor{}
	add := func(s string) {
		if len(s) >= MinSecret && !slices.Contains(r.forms, s) {
			r.forms = append(r.forms, s)
		}
	}
	for _, v := range values {
		parts := []string{v, strings.TrimSpace(v)}
		if strings.Contains(v, "\n") {
			for line := range strings.Lines(v) {
				// The frame of a PEM block is no secret.
				if line = strings.TrimSpace(line); len(line) >= 8 && !strings.HasPrefix(line, "-----") {
					parts = append(parts, line)
				}
			}
		}
		for _, p := range parts {
			if len(p) < MinSecret {
				continue
			}
			add(p)
			for _, html := range []bool{true, false} {
				once := jsonText(p, html)
				add(once)
				add(jsonText(once, html)) // JSON in a text of JSON
			}
			add(strings.ReplaceAll(p, "'", `'\''`)) // in quotes of a shell
			for _, form := range percentForms(p) {
				add(form)
			}
			add(hex.EncodeToString([]byte(p)))
			add(strings.ToUpper(hex.EncodeToString([]byte(p))))
			for _, form := range base64Forms(p) {
				add(form)
			}
		}
	}
	slices.SortStableFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	return r
}

func jsonText(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s)
	return strings.Trim(strings.TrimSuffix(b.String(), "\n"), `"`)
}

// percentForms are what URLs and forms make of a text: programs differ in which
// characters they leave as they are, and in the case of the digits.
func percentForms(s string) (out []string) {
	query := url.QueryEscape(s)
	blank := strings.ReplaceAll(query, "+", "%20")
	component := strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(blank) // encodeURIComponent
	for _, form := range []string{query, url.PathEscape(s), blank, component, strings.ReplaceAll(blank, "%2F", "/")} {
		out = append(out, form, percentByte().ReplaceAllStringFunc(form, strings.ToLower))
	}
	return out
}

var percentByte = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[0-9A-F]{2}`) })

// base64Forms are parts of the base64 of any text with s in it: where it
// begins at each of the three places of a group, the characters that only s
// decides (as in user:password of HTTP). Short ones would match anywhere.
func base64Forms(s string) (out []string) {
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			text := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + s))
			text = text[(shift*8+5)/6:]                      // of what is before
			text = text[:len(text)-partOf((shift+len(s))%3)] // with what follows
			if len(text) >= 6 {
				out = append(out, text)
			}
		}
	}
	return out
}

// partOf is how many characters hold bits of what follows a rest of so many
// bytes.
func partOf(rest int) int {
	if rest == 0 {
		return 0
	}
	return 1
}

// text replaces the secrets of a text.
func (r *redactor) text(s string) string {
	for _, form := range r.forms {
		s = strings.ReplaceAll(s, form, Replacement)
	}
	return credentials(s)
}

// credentialText finds what names itself a credential: a header, a parameter, a
// password of a URL.
var credentialText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)((?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:bearer |basic |token |digest )?\s*)[^\s"',;]+` +
		`|(\b(?:bearer|basic) )[a-z0-9+/=._~-]{8,}` +
		`|(\b[a-z0-9_-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)["']?\s*[:=]\s*["']?)[^\s"',;&]+` +
		`|(\b[a-z][a-z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']+(?:@)`)
})

func credentials(s string) string {
	if !mayName(s) {
		return s
	}
	return credentialText().ReplaceAllStringFunc(s, func(found string) string {
		m := credentialText().FindStringSubmatch(found)
		for _, name := range m[1:4] {
			if name != "" {
				return name + Replacement
			}
		}
		if m[4] != "" {
			return m[4] + Replacement + "@"
		}
		return Replacement
	})
}

// mayName is a quick look.
func mayName(s string) bool {
	low := strings.ToLower(s)
	for _, w := range []string{"authorization", "bearer", "basic", "passw", "secret", "token", "key", "://"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// isCredentialKey are names of arguments whose values are never kept.
var isCredentialKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:proxy-)?authorization$|(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|cookie)$`)
})

// arguments replaces the secrets in every text and name of the arguments, and
// cuts long texts. What is no JSON is kept as a text.
func (r *redactor) arguments(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	w := walker{r: r, left: maxArguments}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err != nil || d.More() {
		v = string(raw)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(w.value(v)); err != nil {
		return json.RawMessage(`"[unreadable]"`)
	}
	if out := bytes.TrimSpace(b.Bytes()); len(out) <= 4*maxArguments {
		return out
	}
	// Many small ones: as one text.
	text := string(bytes.TrimSpace(b.Bytes()))
	out, _ := json.Marshal((&walker{r: &redactor{}, left: maxText}).text(text))
	return out
}

type walker struct {
	r    *redactor
	left int // bytes of texts
}

func (w *walker) value(v any) any {
	switch v := v.(type) {
	case string:
		return w.text(v)
	case json.Number:
		return w.number(v)
	case []any:
		for i := range v {
			v[i] = w.value(v[i])
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			x := v[k]
			if _, text := x.(string); text && isCredentialKey().MatchString(k) {
				x = Replacement
			} else {
				x = w.value(x)
			}
			base := w.text(k)
			name := base
			for n := 2; ; n++ { // names that were cut may be alike
				if _, there := out[name]; !there {
					break
				}
				name = fmt.Sprintf("%s (%d)", base, n)
			}
			out[name] = x
		}
		return out
	}
	return v
}

// number keeps a number, unless it is a secret.
func (w *walker) number(n json.Number) any {
	if s := n.String(); w.r.text(s) != s || len(s) > maxText {
		return Replacement
	}
	return n
}

// text replaces first and cuts then: half of a secret would not be found.
func (w *walker) text(s string) string {
	s = w.r.text(s)
	keep := min(maxText, max(w.left, 0))
	w.left -= len(s)
	if len(s) <= keep {
		return s
	}
	return cutTo(s, keep)
}

// cutTo keeps the beginning of a text, and says so.
func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s[… %d of %d bytes]", s[:n], n, len(s))
}

// Redactor returns a function that replaces the values in a text, in every form in which
// they may have been sent, and what names itself a credential.
func Redactor(values []string) func(string) string { return newRedactor(values).text }
