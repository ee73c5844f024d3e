import { render } from "preact";
import { App } from "./app";
import { watchFocus } from "./arming";
import { watchScrolling } from "./follow";
import { connect } from "./picture";
import { applyTheme } from "./theme";
import "./style.css";

applyTheme();
watchFocus();
watchScrolling();
connect();
render(<App />, document.getElementById("app")!);
