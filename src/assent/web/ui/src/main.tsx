import { render } from "preact";
import { App } from "./app";
import { watchFocus } from "./arming";
import { connect } from "./picture";
import { applyTheme } from "./theme";
import "./style.css";

applyTheme();
watchFocus();
connect();
render(<App />, document.getElementById("app")!);
