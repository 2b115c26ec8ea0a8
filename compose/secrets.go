package compose

import (
	"fmt"

	"github.com/llmdo/workshop/workshop"
)

// secret binds the file with a secret's value (B11): the value never enters
// the project. Only workers that name the secret get it.
func (m *machine) secret(a *addition, s *workshop.Secret, user string) {
	if !m.f.Local {
		m.list.add("engine-elsewhere", s.At.Range, fmt.Sprintf("the engine does not see this machine's files, so the secret %s can't be mounted", s.Name),
			"Secrets are files of this machine that are bound into the worker.", "use an engine on this machine, or remove the secret")
		return
	}
	if m.f.MappedIDs != "" {
		m.list.add("ids-mapped", s.At.Range, fmt.Sprintf("the worker could not read the secret %s, as %s (B11)", s.Name, m.f.MappedIDs), idsDetail, idsHint)
		return
	}
	file := SecretFile(m.f, s.Name, user)
	if file == "" {
		m.list.add("secret-missing", s.At.Range, fmt.Sprintf("secret %s has no value here", s.Name), "", secretHint(s))
		return
	}
	a.volumes = append(a.volumes, bind(file, SecretsDir+"/"+s.Name, true))
}

func secretHint(s *workshop.Secret) string {
	if s.Env != "" {
		return "set it: export " + s.Env + "=…"
	}
	return "create the file " + s.File.V
}

// SecretFile returns the file of a secret for a worker's user, "" if there is
// none.
func SecretFile(f *Facts, name, user string) string {
	if file := f.SecretFiles[name+"@"+user]; file != "" {
		return file
	}
	return f.SecretFiles[name]
}

// WorkerUsers returns the user of every worker on this machine, by service.
func WorkerUsers(c *Compiled, f Facts) map[string]string {
	out := make(map[string]string, len(c.Roles))
	for name, role := range c.Roles {
		if role == RoleWorker {
			s := c.Project.Services[name]
			out[name] = userOf(s.User, &f)
		}
	}
	return out
}
