package check

import (
	"bytes"
	"testing"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/doctor"
)

// What helps against findings that follow each other is said once, after the last.
func TestDoctorSaysARemedyOnce(t *testing.T) {
	var out bytes.Buffer
	a := verbs{command.NewProgram(&command.System{Out: &out, Err: &out, Env: &app.Env{}})}
	var r app.DoctorReport
	for _, f := range [][3]string{{"memory", "no memory", "as root: x"}, {"cpu", "no cpu", "as root: x"}, {"pids", "no pids", "y"}} {
		r.Findings = append(r.Findings, doctor.Finding{Group: doctor.Groups()[0], Level: doctor.Error, Name: f[0], Text: f[1], Do: f[2]})
	}
	a.printDoctor(r)
	g := "error    " + doctor.Groups()[0] + ": "
	want := g + "no memory\n" + g + "no cpu\n         as root: x\n" + g + "no pids\n         y\n3 errors, 0 warnings\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
