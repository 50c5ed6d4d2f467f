package wire

// triton reads Triton's generate and generate_stream and the Open Inference
// Protocol (KServe V2): tensors with names, and no word of tokens or ends.
type triton struct{}

func (triton) Read(a *Answer, e Event) {
	b := e.Data
	a.SetNoEndMark()
	members(b, func(key, value []byte) {
		switch string(key) {
		case "id":
			a.setID(value)
		case "model_name":
			a.setModel(value)
		case "outputs":
			a.known = true
		case "text_output":
			a.known = true
			if value[0] != '[' {
				a.out(KindContent, value)
				break
			}
			elements(value, func(value []byte) { a.out(KindContent, value) })
		case "details": // KServe's generate
			if reason := text(valueIn(value, "finish_reason")); reason != "" {
				a.SetFinish(0, reason)
			}
		case "error":
			a.readError(value)
		}
	})
}
