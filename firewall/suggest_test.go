package firewall

import "testing"

// A suggested line means the name that it shows when YAML reads it.
func TestSuggestedNamesAreText(t *testing.T) {
	for name, want := range map[string]string{
		"api.example.org": "api.example.org", "12.1e3": `"12.1e3"`, "a.0x1f": `"a.0x1f"`, "null": `"null"`, "db": `"db"`, "1.example": "1.example",
	} {
		if got := suggest(name, 443); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
