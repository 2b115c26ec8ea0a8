package pathglob

import (
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, glob, want string }{
		{"plain", "src/**/*.go", ""},
		{"empty", "", ""},
		{"alternatives", "{a,b}/{c,d,e}", ""},
		{"as many as may be", strings.Repeat("{a,b}", 8), ""},
		{"too many", strings.Repeat("{a,b}", 9), "more than 256 alternatives"},
		{"45 pairs", strings.Repeat("{a,b}", 45), "more than 256 alternatives"},
		{"nested", strings.Repeat("{a,", 45) + strings.Repeat("}", 45), "more than 256 alternatives"},
		{"few braces, many commas", "{" + strings.Repeat("a,", 30) + "}{" + strings.Repeat("a,", 30) + "}", "more than 256 alternatives"},
		{"a brace in a class", strings.Repeat("{[}]a,b}", 45), "more than 256 alternatives"},
		{"a brace in a class that begins with !", strings.Repeat("{[!}]a,b}", 45), "more than 256 alternatives"},
		{"an escaped bracket", strings.Repeat(`{\[,b}`, 45), "more than 256 alternatives"},
		{"a comma in a class", strings.Repeat("{[,]}", 45), ""},
		{"long", strings.Repeat("**/", 400), "has 1200 bytes, at most 1024"},
		{"open", "{a", "isn't closed"},
		{"open class", "[a", "isn't closed"},
		{"a backslash", `a\`, "isn't closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(c.glob)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Any glob that Check takes: matched in bounded time, and as many alternatives as
// said at the most.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"a/**/b", "{a,b}{c,d}", "{[}]a,b}", `{a\,b,c}`, "[!a-z]*", "{{a,b},c}", "**/**/**/x", strings.Repeat("*a", 200), strings.Repeat("{a,b}", 8), strings.Repeat("**/", 300) + "x"} {
		f.Add(s, "a/b/c")
		f.Add(s, strings.Repeat("a/", 1000)+"b")
		f.Add(s, strings.Repeat("a", 250))
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		if Check(glob) != nil || len(name) > 4096 {
			return
		}
		if n := expansions(glob, MaxAlternatives+1); n > Alternatives(glob) {
			t.Errorf("%q makes %d globs, Alternatives gives %d", glob, n, Alternatives(glob))
		}
		begin := time.Now()
		doublestar.MatchUnvalidated(glob, name)
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

// expansions counts the globs that braces make, up to most, one pair after the
// other as doublestar takes them.
func expansions(glob string, most int) int {
	open := -1
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '[':
			for i++; i < len(glob) && glob[i] != ']'; i++ {
				if glob[i] == '\\' {
					i++
				}
			}
		case '{':
			open = i
		}
		if open >= 0 {
			break
		}
	}
	if open < 0 {
		return 1
	}
	n, depth, from := 0, 0, open+1
	var parts []string
	for i := open + 1; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '[':
			for i++; i < len(glob) && glob[i] != ']'; i++ {
				if glob[i] == '\\' {
					i++
				}
			}
		case '{':
			depth++
		case ',':
			if depth == 0 {
				parts, from = append(parts, glob[from:i]), i+1
			}
		case '}':
			if depth--; depth < 0 {
				parts = append(parts, glob[from:i])
				for _, p := range parts {
					if n += expansions(glob[:open]+p+glob[i+1:], most-n); n >= most {
						return n
					}
				}
				return n
			}
		}
	}
	return 1
}
