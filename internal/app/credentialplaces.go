package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// own refuses files that come with the project, or that a worker may write or read: whoever
// changes those would choose where credentials go, or what runs here (B33, B43).
func own(env *Env, ready *Project, all []credential.Credential) error {
	var seen []string
	for _, s := range ready.Compiled.Facts.Sources {
		seen = append(seen, s.Real)
	}
	f := &Failure{Code: CodeRefused}
	var problems []string
	check := func(what, name string, dirs ...string) {
		if name == "" {
			return
		}
		real, dirs := RealPath(name), append(dirs, seen...)
		text := fmt.Sprintf("%s, %s, is in the project or in what its workers see", env.Shown(name), what)
		if !slices.Contains(problems, text) && slices.ContainsFunc(dirs, func(dir string) bool { return dir != "" && (subpath.Within(real, dir) || subpath.Within(name, dir)) }) {
			problems = append(problems, text)
		}
	}
	if env.Settings.Credentials != "" { // the usual one is in the project where that is the home directory
		check("the file of credentials", env.CredentialsFile(), ready.Dir)
	}
	project := ready.Dir
	if env.Home != "" && subpath.Within(RealPath(env.Home), project) {
		project = "" // all files of the user's are in it
	}
	for _, x := range all {
		check("the value of the credential "+x.Name, x.Source.File, project)
		check("the `ca` of the credential "+x.Name, x.Authorities, project)
		check("the `known_hosts` of the credential "+x.Name, x.KnownHosts, project)
		for i, arg := range x.Source.Command {
			if i == 0 {
				check("the command of the credential "+x.Name, arg, ready.Dir)
				continue
			}
			for _, word := range strings.FieldsFunc(arg, partsWords) { // a script, or what it reads
				if filepath.IsAbs(word) {
					check("the command of the credential "+x.Name, word, project)
				}
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	f.Err = fmt.Errorf("nothing was started: %s", strings.Join(problems, "\n"))
	return f.Hint("keep it where no repository and no worker can change it, such as %s", env.Shown(env.ConfigDir()))
}

// partsWords reports whether a character parts the names of files in an argument: in a shell's
// text, or behind an option.
func partsWords(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`=:;,|&<>()", r) }
