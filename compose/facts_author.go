package compose

import (
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/workshop"
)

// GitAuthor is who commits, as git's variables have it; empty: not known.
type GitAuthor struct{ AuthorName, AuthorEmail, CommitterName, CommitterEmail string }

// Field returns the name or email of the author or committer.
func (a *GitAuthor) Field(who, what string) *string {
	switch who + "." + what {
	case "author.name":
		return &a.AuthorName
	case "author.email":
		return &a.AuthorEmail
	case "committer.name":
		return &a.CommitterName
	}
	return &a.CommitterEmail
}

// author gives a worker the user's name for commits, where the file says so (B45). Variables
// of the file win.
func (m *machine) author(s *types.ServiceConfig, a *addition, k *workshop.Container) {
	if k.GitAuthor.V != workshop.GitAuthorHost {
		return
	}
	g := m.f.GitAuthor
	for name, value := range map[string]string{
		"GIT_AUTHOR_NAME": g.AuthorName, "GIT_AUTHOR_EMAIL": g.AuthorEmail,
		"GIT_COMMITTER_NAME": g.CommitterName, "GIT_COMMITTER_EMAIL": g.CommitterEmail,
	} {
		if _, set := k.Env[name]; !set && value != "" {
			a.setEnv(name, value)
		}
	}
}
