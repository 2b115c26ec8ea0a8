package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/trust"
)

// own refuses files that come with the project, or that a worker may write or read: whoever
// changes those would choose where credentials go, by what their hosts are verified, what was
// agreed to, or what runs here (B33, B43). lines are those that want credentials.
func own(env *Env, ready *Project, all []credential.Credential, lines []broker.Line) error {
	var seen []string
	for _, s := range ready.Compiled.Facts.Sources {
		seen = append(seen, s.Real)
	}
	f := &Failure{Code: CodeRefused}
	var problems []string
	inside := func(what, name string, dirs ...string) {
		if name == "" {
			return
		}
		real := RealPath(name)
		text := fmt.Sprintf("%s, %s, is in the project or in what its workers see", env.Shown(name), what)
		if !slices.Contains(problems, text) && slices.ContainsFunc(dirs, func(dir string) bool { return dir != "" && (subpath.Within(real, dir) || subpath.Within(name, dir)) }) {
			problems = append(problems, text)
		}
	}
	check := func(what, name string, dirs ...string) { inside(what, name, append(dirs, seen...)...) }
	project := ready.Dir
	if env.isHome(project) {
		project = "" // all files of the user's are in it
	}
	file := project // XDG_CONFIG_HOME may name the usual one in it
	if env.Settings.Credentials != "" {
		file = ready.Dir
	}
	check("the file of credentials", env.CredentialsFile(), file)
	check("what you agree to", trust.Credentials(env.StateDir()).Path, project)
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
	if slices.ContainsFunc(all, func(x credential.Credential) bool { return x.AskPush }) {
		argv, socket, err := env.approvers()
		if err != nil {
			return err
		}
		check("your settings", env.userSettings(), project)
		check("approvals_socket", socket, ready.Dir)
		if len(argv) > 0 && filepath.IsAbs(argv[0]) {
			check("approvals_command", argv[0], ready.Dir)
		}
	}
	if verifiedByMachine(all, lines) {
		for _, a := range env.authorityFiles() {
			inside("the certificates of "+a[0], a[1], append(writtenBy(ready), project)...)
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

// isHome reports whether a directory is the user's home, or has it: by the machine's user
// database, since HOME may be what a project sets.
func (env *Env) isHome(dir string) bool {
	homes := facts.Homes(os.Getuid(), env.Lookup)
	if len(homes) == 0 {
		homes = []string{env.Home}
	}
	return slices.ContainsFunc(homes, func(home string) bool { return home != "" && subpath.Within(RealPath(home), dir) })
}

// verifiedByMachine reports whether a line's host is verified by the machine's authorities.
func verifiedByMachine(all []credential.Credential, lines []broker.Line) bool {
	return slices.ContainsFunc(lines, func(l broker.Line) bool {
		return !l.OfProxy() && slices.ContainsFunc(all, func(x credential.Credential) bool { return x.Name == l.Credential && x.Authorities == "" })
	})
}

// authorityFiles are variables with what each names in the place of the machine's authorities,
// see [facts.AuthorityPlaces].
func (env *Env) authorityFiles() (out [][2]string) {
	file, dirs := facts.AuthorityPlaces(env.Lookup)
	if file != "" {
		out = append(out, [2]string{"SSL_CERT_FILE", env.Abs(file)})
	}
	for _, dir := range dirs {
		out = append(out, [2]string{"SSL_CERT_DIR", env.Abs(dir)})
	}
	return out
}

// writtenBy are the directories and files that a worker may write.
func writtenBy(ready *Project) (out []string) {
	for i := range ready.Workshop.Workers {
		for _, m := range ready.Workshop.Workers[i].Container.Mounts {
			if m.ReadWrite {
				out = append(out, ready.Compiled.Facts.Sources[m.Source.V].Real)
			}
		}
	}
	return out
}
