package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"strconv"
	"time"
)

// newTools are the tools of the agent: its own, and those of the MCP server.
func newTools(ctx context.Context, root *os.Root, client *http.Client, statusURL string, server *unitsServer) ([]*tool, error) {
	calculator, err1 := newTool("calculator", "Evaluates a sum, such as (3 + 4) * 12.5, exactly.", calculate)
	clock, err2 := newTool("clock", "Tells the time in a time zone.", tellTime)
	search, err3 := newTool("search_files", "Searches the text of the files of the repository.",
		func(ctx context.Context, in search) (string, error) { return searchFiles(ctx, root, in) })
	status, err4 := newTool("service_status", "Asks the service whether it is up.",
		func(ctx context.Context, _ struct{}) (string, error) { return serviceStatus(ctx, client, statusURL) })
	others, err5 := server.tools(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	search.rule = insideRoot
	return append([]*tool{calculator, clock, search, status}, others...), nil
}

type sum struct {
	Expression string `json:"expression" jsonschema:"numbers, + - * / and parentheses"`
}

const maxExpression = 200 // bytes; it bounds the depth and the size of every number

// calculate evaluates an expression as Go does constants: without rounding.
func calculate(_ context.Context, in sum) (string, error) {
	if len(in.Expression) > maxExpression {
		return "", &argumentError{fmt.Errorf("an expression has at most %d bytes", maxExpression)}
	}
	expr, err := parser.ParseExpr(in.Expression)
	if err != nil {
		return "", &argumentError{err}
	}
	value, err := evaluate(expr)
	if err != nil {
		return "", err
	}
	if whole := constant.ToInt(value); whole.Kind() == constant.Int {
		return whole.ExactString(), nil
	}
	near, _ := constant.Float64Val(value)
	return strconv.FormatFloat(near, 'g', 15, 64), nil
}

func evaluate(expr ast.Expr) (constant.Value, error) {
	switch e := expr.(type) {
	case *ast.ParenExpr:
		return evaluate(e.X)
	case *ast.BasicLit:
		if e.Kind == token.INT || e.Kind == token.FLOAT {
			if v := constant.MakeFromLiteral(e.Value, e.Kind, 0); v.Kind() != constant.Unknown {
				return v, nil
			}
		}
	case *ast.UnaryExpr:
		if x, err := evaluate(e.X); err != nil {
			return nil, err
		} else if e.Op == token.ADD || e.Op == token.SUB {
			return constant.UnaryOp(e.Op, x, 0), nil
		}
	case *ast.BinaryExpr:
		x, err := evaluate(e.X)
		if err != nil {
			return nil, err
		}
		y, err := evaluate(e.Y)
		if err != nil {
			return nil, err
		}
		switch {
		case e.Op == token.QUO && constant.Sign(y) == 0:
			return nil, &toolError{"nothing can be divided by zero"}
		case e.Op == token.ADD || e.Op == token.SUB || e.Op == token.MUL || e.Op == token.QUO:
			return constant.BinaryOp(x, e.Op, y), nil
		}
	}
	return nil, &argumentError{errors.New("want numbers, + - * / and parentheses")}
}

type place struct {
	Zone string `json:"zone" jsonschema:"name of the IANA database, such as UTC or Asia/Tokyo"`
}

func tellTime(_ context.Context, in place) (string, error) {
	zone, err := time.LoadLocation(in.Zone)
	if err != nil || in.Zone == "" || in.Zone == "Local" {
		return "", &toolError{"the IANA database has no such zone"}
	}
	return time.Now().In(zone).Format("15:04 on Monday 2 January 2006"), nil
}
