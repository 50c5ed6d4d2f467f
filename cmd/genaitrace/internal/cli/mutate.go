package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/mutate"
)

func (a *app) mutate() *cobra.Command {
	var path string
	var minScore float64
	cmd := &cobra.Command{
		Use:   "mutate --contract FILE CAPTURE…",
		Short: "Test a contract: put faults into a capture that passes, and see which it misses",
		Long: "mutate puts one fault after the other into a capture that passes the contract: a lost\nspan, a wrong unit, a broken trace. It tells which ones the contract does not catch, and\nwhat in it would.\n\n" +
			exitCodes,
		Example: "  genaitrace mutate --contract observability.yaml --min-score 0.95 capture.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail(exitUsage, "no capture is given; - is stdin")
			}
			if !(minScore >= 0 && minScore <= 1) {
				return fail(exitUsage, "--min-score is %v, want 0 to 1", minScore)
			}
			c, err := load(path)
			if err != nil {
				return err
			}
			good := new(capture.Capture)
			if err := a.feed(cmd.Context(), args, good.Add); err != nil {
				return err
			}
			return a.score(c, good, minScore)
		},
	}
	cmd.Flags().StringVar(&path, "contract", "", contractUsage)
	cmd.Flags().Float64Var(&minScore, "min-score", 0.95, "least `SHARE` of the faults that the contract must catch, from 0 to 1")
	return cmd
}

func (a *app) score(c *contract.Contract, good *capture.Capture, minScore float64) error {
	before := verdict{failOn: string(contract.Error)}
	if err := before.judge(c.Check(good), "the captures hold no span, no metric and no log record"); err != nil {
		var failed *failure
		errors.As(err, &failed)
		return fail(failed.code, "%w; faults are put into a capture that passes, check tells why this one does not", err)
	}
	result, err := mutate.Run(c, good)
	if err != nil {
		return &failure{exitNothing, err}
	}
	if err := result.WriteText(a.stdout); err != nil {
		return &failure{exitUsage, err}
	}
	if result.Score() < minScore {
		caught := float64(int(result.Score()*1000)) / 10 // never rounded up to what is wanted
		return fail(exitFindings, "the contract %s catches %.1f %% of the faults, --min-score wants %v %%", c.Name(), caught, minScore*100)
	}
	return nil
}
