package docker

import (
	"context"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"

	"github.com/llmdo/workshop/internal/engine"
)

// TestTwinsOfANetwork: a run that was killed at the wrong moment leaves two
// networks of one name.
func TestTwinsOfANetwork(t *testing.T) {
	e := realEngine(t)
	ctx := context.Background()
	const project = "ws-twins"
	label := map[string]string{engine.LabelProject: project}
	var wait []chan error
	for range 2 { // at once, so that the engine's own check sees neither
		done := make(chan error, 1)
		wait = append(wait, done)
		go func() {
			_, err := e.cli.NetworkCreate(ctx, project+"_default", network.CreateOptions{Driver: "bridge", Labels: label})
			done <- err
		}()
	}
	for _, done := range wait {
		<-done
	}
	find := func() []network.Summary {
		list, err := e.cli.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", engine.LabelProject+"="+project))})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	t.Cleanup(func() {
		for _, n := range find() {
			_ = e.cli.NetworkRemove(ctx, n.ID)
		}
	})
	if len(find()) < 2 {
		t.Skip("this engine made only one")
	}
	if err := (&run{e: e, p: &engine.Plan{Project: project}}).removeTwins(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(find()); n != 1 {
		t.Errorf("%d networks are left", n)
	}
}
