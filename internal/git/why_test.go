package git

import (
	"errors"
	"testing"
)

func TestWhyLine(t *testing.T) {
	for said, want := range map[string]string{
		"":                          "exit status 128",
		"fatal: not a repository\n": "not a repository",
		"ssh: connect to host git.example.org port 22: Connection refused\r\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n": "ssh: connect to host git.example.org port 22: Connection refused",
		"git@git.example.org: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nPlease make sure you have\n":                                                                      "git@git.example.org: Permission denied (publickey).",
		"remote: Not here.\nfatal: repository 'https://git.example.org/a/' not found\n":                                                                                                                          "repository 'https://git.example.org/a/' not found",
		"error: object is missing\n":                                "object is missing",
		"fatal: Could not read from remote repository.\n\nPlease\n": "Could not read from remote repository.",
	} {
		if got := whyLine([]byte(said), errors.New("exit status 128")); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
