package main

import "github.com/spf13/cobra"

func (p *program) policyCommand() *cobra.Command { return &cobra.Command{Use: "policy"} }
