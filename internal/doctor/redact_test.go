package doctor

import (
	"strings"
	"testing"
)

func TestRedactor(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	r := NewRedactor(Secrets{
		Values: []string{"hunter2hunter2", "short", "multi\nline-secret-x", token},
		Hosts:  []string{"db.corp.example", "*.api.example", "proxy.corp.example:3128"},
		Home:   "/home/jane", User: "jane", Machine: "janes-laptop",
	})
	for in, want := range map[string]string{
		"password hunter2hunter2!":                           "password [secret]!",
		"short words stay":                                   "short words stay",
		"line-secret-x":                                      "[secret]",
		"aHVudGVyMmh1bnRlcjI=":                               "[secret]I=", // base64
		"x " + token:                                         "x " + strings.Repeat("*", len(token)),
		"http://u:p@DB.corp.example:5432/x?key=1 y":          "http://host-1:5432/x?[secret] y",
		"to db.corp.example, not x":                          "to host-1, not x",
		"at v1.api.example":                                  "at v1.host-2",
		"/home/jane/src by jane on janes-laptop":             "~/src by NAME on NAME",
		"janet":                                              "janet",
		"198.51.100.7 and localhost":                         "198.51.100.7 and localhost",
		"Authorization: Bearer abcdefgh1234":                 "Authorization: Bearer [secret]",
		"-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE": strings.Repeat("*", 27) + "\n***\n*****************", // to the end of the block
	} {
		got := r.Text(in)
		if strings.HasPrefix(in, "-----BEGIN") {
			if strings.Contains(got, "MII") {
				t.Errorf("%q: got %q", in, got)
			}
			continue
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"db.corp.example": "host-1", "DB.corp.example.": "host-1", "db.corp.example:5432": "host-1:5432", "*.api.example": "*.host-2", "**.new.example": "**.host-4",
		"198.51.100.7": "198.51.100.7", "localhost": "localhost", "": "",
	} {
		if got := r.Host(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := r.Text("new.example"); got != "host-4" {
		t.Errorf("a host that was named later: %q", got)
	}
}

// A value that has a token or a URL in it is taken out as a whole (B11). A value that a
// repository plants in its .env reveals no part of a token.
func TestRedactorOfOverlaps(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	r := NewRedactor(Secrets{Values: []string{"begin-" + token + "/end-of-it", "postgres://u:pw@db-17/prod-ledger?sslmode=require", "ghp_a1", "https://h/?a"}})
	for in, secrets := range map[string][]string{
		"x begin-" + token + "/end-of-it y":                          {"begin-", "end-of-it"},
		"at postgres://u:pw@db-17/prod-ledger?sslmode=require.":      {"db-17", "ledger", "sslmode"},
		`{"a": "postgres://u:pw@db-17/prod-ledger?sslmode=require"}`: {"db-17", "ledger", "sslmode"},
		"x " + token + " y":             {"a1B2a1B2"},
		"https://h/?access=Zq81mVx0 it": {"Zq81"},
	} {
		for _, secret := range secrets {
			if got := r.Text(in); strings.Contains(got, secret) {
				t.Errorf("%q: got %q, with %q", in, got, secret)
			}
		}
	}
}

// What is taken out is in no text, whatever is around it, and nothing crashes.
func FuzzRedactor(f *testing.F) {
	f.Add("a", "b")
	f.Add("http://x:", "@y/?q=")
	f.Add("\xff", "İ")
	r := NewRedactor(Secrets{Values: []string{"correct-horse-battery"}, Hosts: []string{"internal.corp.example"}, Home: "/home/jane", User: "jane"})
	f.Fuzz(func(t *testing.T, before, after string) {
		out := r.Text(before + "correct-horse-battery" + after)
		if strings.Contains(out, "correct-horse-battery") && !strings.Contains(before+after, "correct-horse-battery") {
			t.Errorf("got %q", out)
		}
		out = r.Text(before + " internal.corp.example " + after)
		if strings.Contains(out, " internal.corp.example ") {
			t.Errorf("got %q", out)
		}
	})
}
