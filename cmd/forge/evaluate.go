package main

import "github.com/spf13/cobra"

func evaluateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "evaluate", Short: "Measure how well parts of Forge do their work",
		Long: "Measures parts of Forge on sets of cases whose right answers are known.",
	}
	cmd.AddCommand(evaluateRecallCommand())
	return cmd
}
