package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/compose"
)

func TestOurContainer(t *testing.T) {
	const ours = compose.LabelDirectory
	for name, tc := range map[string]struct {
		want   bool
		labels map[string]string
	}{
		"none":                     {false, nil},
		"of a docker-compose.yml":  {false, map[string]string{LabelProject: "p", LabelService: "db", LabelWorkingDir: "/work/p"}},
		"with no directory":        {false, map[string]string{LabelProject: "p", LabelService: "db"}},
		"below .workshop":          {false, map[string]string{LabelProject: "p", LabelService: "db", LabelWorkingDir: "/work/p/.workshop/p"}},
		"of an image with a label": {false, map[string]string{LabelService: "db", LabelWorkingDir: "/work/p", ours: "/work/p", LabelHelper: "1"}},
		"an engine's":              {true, ContainerLabels(desired(), "a")},
		"Compose's from our files": {true, map[string]string{LabelService: "a", LabelWorkingDir: "/link/p/.workshop/p", ours: "/work/p"}},
		"a worker whose image says helper": {true, map[string]string{
			LabelService: "a", LabelWorkingDir: "/work/p/.workshop/p", ours: "/work/p", LabelHelper: "1"}},
		"a helper": {true, map[string]string{LabelHelper: "true", LabelOneOff: "True", LabelProject: "p", ours: "/work/p"}},
	} {
		if got := OurContainer(tc.labels); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What an image says of its containers makes no worker a helper, nor one of
// Compose's an engine's.
func TestLabelsOfAnImage(t *testing.T) {
	if IsHelper(map[string]string{LabelService: "a", LabelHelper: "1"}) {
		t.Error("a worker is taken for a helper")
	}
	if MadeByEngine(map[string]string{compose.LabelConfigHash: "x", LabelComposeHash: "y"}) != "" {
		t.Error("Compose's is taken for an engine's")
	}
	if l := ContainerLabels(desired(), "a"); MadeByEngine(l) == "" {
		t.Error("an engine's is taken for Compose's")
	}
}

func TestSift(t *testing.T) {
	ours := map[string]string{compose.LabelDirectory: "/work/p"}
	named := func(label, key string) map[string]string { return map[string]string{LabelProject: "p", label: key} }
	seen := func(byCompose bool, others ...Other) Observed {
		return Observed{Project: "p", Others: others,
			Containers: []Container{{Name: "p-room-1", ByCompose: byCompose, NetworkIDs: []string{"2", "3"}, Volumes: []string{"p_sockets", "p_pgdata", "p_copy-1"}}},
			Networks: []Object{{ID: "1", Name: "p_old", Labels: ours}, {ID: "2", Name: "p_default", Labels: named(LabelNetwork, "default")},
				{ID: "3", Name: "p_back", Labels: named(LabelNetwork, "back")}, {ID: "4", Name: "p_default", Labels: named(LabelNetwork, "default")}},
			Volumes: []Object{{Name: "p_policy", Labels: ours}, {Name: "p_sockets", Labels: named(LabelVolume, "sockets")},
				{Name: "p_pgdata", Labels: named(LabelVolume, "pgdata")}, {Name: "p_copy-1", Labels: named(LabelVolume, "copy-1")},
				{Name: "p_copy-2", Labels: named(LabelVolume, "copy-2")}, {Name: "sockets", Labels: named(LabelVolume, "sockets")}},
		}
	}
	for name, tc := range map[string]struct {
		o      Observed
		others string
	}{
		"engine":                {seen(false), "network/p_default network/p_back network/p_default volume/p_sockets volume/p_pgdata volume/p_copy-1 volume/p_copy-2 volume/sockets"},
		"Compose, older files":  {seen(true), "network/p_back network/p_default volume/p_pgdata volume/p_copy-2 volume/sockets"},
		"Compose, beside other": {seen(true, Other{Object: "container/p_db_1"}), "container/p_db_1 network/p_default network/p_back network/p_default volume/p_sockets volume/p_pgdata volume/p_copy-1 volume/p_copy-2 volume/sockets"},
	} {
		tc.o.Sift()
		var got []string
		for _, o := range tc.o.Others {
			got = append(got, o.Object)
		}
		if diff := cmp.Diff(tc.others, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: others (-want +got):\n%s", name, diff)
		}
	}
}

// B43: a worker made the directories, with any name: it writes no line of its own.
func TestForeignDirectoriesArePrintable(t *testing.T) {
	const dir = "/w/build\nworkshop: hint: run `evil`"
	for _, e := range []*ForeignError{NewForeignError("p", dir, "/w"), NewForeignError("p", "/w", dir), {Project: "p", Object: "container/x\ny", Other: dir}, {Project: "p", Object: "container/x\ny"}} {
		if strings.ContainsRune(e.Error(), '\n') {
			t.Errorf("a line of its own: %s", e)
		}
	}
}

// What only carries the project's name is never in a plan.
func TestPlansLeaveOthersAlone(t *testing.T) {
	d := desired()
	other := Other{Object: "volume/p_pgdata"}
	var f *ForeignError
	refused := func(what string, err error) {
		t.Helper()
		if !errors.As(err, &f) || f.ExitCode() != 4 || !strings.Contains(err.Error(), "volume/p_pgdata") || !strings.Contains(err.Error(), "-p p-") {
			t.Errorf("%s: %v", what, err)
		}
	}
	alone := Observed{Project: "p", Others: []Other{other}}
	_, up := PlanUp(d, alone)
	refused("up", up)
	_, down := PlanDown(alone, "/work/p")
	refused("down", down)
	_, down = PlanDown(alone, "")
	refused("down -p", down)
	beside := running(d)
	beside.Others = alone.Others
	_, up = PlanUp(d, beside)
	refused("up beside", up)
	// What runs of ours can always be stopped.
	p, err := PlanDown(beside, "/work/p")
	if err != nil || strings.Contains(p.String(), "pgdata") {
		t.Fatalf("down beside: %v\n%s", err, p)
	}
	golden(t, "down-beside-others", p.String())
	if p := PlanRollBack(d.Compiled, Observed{}, beside); strings.Contains(p.String(), "pgdata") {
		t.Errorf("roll back:\n%s", p)
	}
}
