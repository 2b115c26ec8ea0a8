// Command empty links the five packages that the host programs are built on
// and does nothing: what `workshop --version` is measured against.
package main

import (
	"fmt"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/docker/client"
	"github.com/go-playground/validator/v10"
	"github.com/spf13/cobra"
	"github.com/spf13/viper"
)

func main() {
	root := &cobra.Command{Use: "empty", Version: "0", Run: func(*cobra.Command, []string) {
		// never reached with --version; keeps the packages linked
		fmt.Println(viper.New(), validator.New(), types.Project{}, client.DefaultDockerHost)
		c, err := client.NewClientWithOpts(client.FromEnv)
		fmt.Println(c, err)
	}}
	if err := root.Execute(); err != nil {
		fmt.Println(err)
	}
}
