package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/initimage"
)

// Leftovers lists helpers of interrupted commands, volumes and networks of projects,
// and what all workshops share: workshop-init and images that were built.
func (e *Engine) Leftovers(ctx context.Context) ([]engine.Leftover, error) {
	if err := e.Ping(ctx); err != nil {
		return nil, err
	}
	list, err := e.cli.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, e.explain(err)
	}
	usage, err := e.cli.DiskUsage(ctx, types.DiskUsageOptions{Types: []types.DiskUsageObject{types.ImageObject, types.VolumeObject}})
	if err != nil {
		return nil, e.explain(err)
	}
	var out []engine.Leftover
	used := map[string]bool{} // images by ID, volumes by name, networks by ID
	for i := range list {
		c := observed(&list[i])
		if c.Helper && c.State == "created" && time.Since(time.Unix(list[i].Created, 0)) > lockAge {
			out = append(out, engine.Leftover{
				Kind: engine.LeftoverContainer, ID: c.ID, Name: c.Name, Bytes: 0,
				Project: list[i].Labels[engine.LabelProject], Directory: c.Directory,
			})
			continue // what it has isn't used by it
		}
		used[c.ImageID] = true
		for _, name := range slices.Concat(c.Volumes, c.NetworkIDs) {
			used[name] = true
		}
	}
	for _, v := range present(usage.Volumes) {
		size := int64(-1)
		if v.UsageData != nil {
			size = v.UsageData.Size
		}
		l := engine.Leftover{Kind: engine.LeftoverVolume, ID: v.Name, Name: v.Name, Bytes: size, Project: v.Labels[engine.LabelProject], Directory: v.Labels[compose.LabelDirectory]}
		_, cache := engine.CacheOf(engine.Object{Name: v.Name, Labels: v.Labels})
		switch {
		case used[v.Name] || cache:
		case v.Labels[labelTools] == v.Name:
			l.Kind, l.Project, l.Directory = engine.LeftoverProgram, "", ""
			l.Needed = e.isOwn(ctx, func(n initimage.Names) bool { return n.Volume() == v.Name })
			out = append(out, l)
		case l.Directory != "" && l.Project != "":
			out = append(out, l)
		}
	}
	out = append(out, e.leftImages(ctx, present(usage.Images), used)...)
	networks, err := e.cli.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", compose.LabelDirectory))})
	for _, n := range networks {
		if l := n.Labels; !used[n.ID] && l[engine.LabelProject] != "" {
			out = append(out, engine.Leftover{Kind: engine.LeftoverNetwork, ID: n.ID, Name: n.Name, Project: l[engine.LabelProject], Directory: l[compose.LabelDirectory]})
		}
	}
	return out, e.explain(err)
}

// isOwn reports whether something is of the workshop-init of this program.
func (e *Engine) isOwn(ctx context.Context, of func(initimage.Names) bool) bool {
	arch, err := e.arch(ctx)
	if err != nil {
		return true
	}
	n, err := e.init.Names(arch)
	return err == nil && of(n)
}

// leftImages are the images of workshop-init and those that workshops built.
func (e *Engine) leftImages(ctx context.Context, all []*image.Summary, used map[string]bool) (out []engine.Leftover) {
	for _, i := range all {
		names := ourNames(i.RepoTags, i.Labels)
		l := engine.Leftover{ID: i.ID, Name: strings.Join(names, ", "), Bytes: i.Size - max(i.SharedSize, 0), Build: i.Labels[labelBuild]}
		switch {
		case used[i.ID] || len(names) == 0:
		case i.Labels[initimage.Label] == initimage.LabelValue:
			l.Kind = engine.LeftoverProgram
			l.Needed = e.isOwn(ctx, func(n initimage.Names) bool { return i.ID == n.ImageID || i.ID == n.ManifestID })
			out = append(out, l)
		case l.Build != "":
			l.Kind, l.Needed = engine.LeftoverImage, true
			out = append(out, l)
		}
	}
	return out
}

// labelBuild is on an image that was built, with the hash of what it was built of.
const labelBuild = "dev.llmdo.workshop.build"

// ourNames are the names of an image that workshops give: an image that somebody made
// of ours has its labels, and other names.
func ourNames(names []string, labels map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		repository, tag, _ := strings.Cut(name, ":")
		if labels[initimage.Label] == initimage.LabelValue && repository == initimage.Repository {
			return false
		}
		hash := labels[labelBuild]
		return len(hash) < 16 || !strings.HasSuffix(repository, "-build") || tag != hash[:16]
	})
}

// RemoveLeftover removes it by the engine, which refuses what is used. Of an image with
// names of others only ours go.
func (e *Engine) RemoveLeftover(ctx context.Context, l engine.Leftover) error {
	var err error
	switch {
	case l.Kind == engine.LeftoverContainer:
		err = e.cli.ContainerRemove(ctx, l.ID, container.RemoveOptions{RemoveVolumes: true})
	case l.Kind == engine.LeftoverNetwork:
		err = e.cli.NetworkRemove(ctx, l.ID)
	case l.Kind == engine.LeftoverImage, strings.HasPrefix(l.ID, "sha256:"):
		return e.removeImage(ctx, l.ID)
	case l.Kind == engine.LeftoverVolume, l.Kind == engine.LeftoverProgram:
		err = e.cli.VolumeRemove(ctx, l.ID, false)
	default:
		return fmt.Errorf("%s %s is not one of this engine", l.Kind, l.ID)
	}
	return conflict(ignoreGone(err))
}

// removeImage removes the names that workshops give an image, and the image with the
// last of its names.
func (e *Engine) removeImage(ctx context.Context, id string) error {
	i, err := e.cli.ImageInspect(ctx, id)
	if err != nil {
		return ignoreGone(err)
	}
	if i.Config == nil {
		return nil
	}
	for _, name := range ourNames(i.RepoTags, i.Config.Labels) {
		if _, err := e.cli.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true}); err != nil {
			return conflict(ignoreGone(err))
		}
	}
	return nil
}
