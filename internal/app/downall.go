package app

import "context"

// DownListed is [Env.Down] for a workshop that [Env.List] listed.
func (env *Env) DownListed(ctx context.Context, w Workshop, o DownOptions) (changed bool, err error) {
	own := *env
	own.Settings.Project, own.Settings.File, own.Settings.Engine = w.Project, "", w.Engine
	return own.downOf(ctx, ProjectRef{Name: w.Project, Dir: w.Directory}, o)
}
