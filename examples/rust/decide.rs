// Decides rows with a `.qwyc` file from Rust, through libqwyc.
//
//     rustc -O -L /usr/local/lib -l qwyc decide.rs
//     ./decide model.qwyc 1.5,2.25,nan 0,1,2
//
// Each argument after the file is a row. It prints the class of each row and the number of base
// models that were evaluated.
use std::ffi::{c_char, CStr, CString};
use std::ptr;

#[repr(C)]
struct RawModel {
    _private: [u8; 0],
}

extern "C" {
    fn qwyc_load(path: *const c_char, model: *mut *mut RawModel) -> i32;
    fn qwyc_free(model: *mut RawModel);
    fn qwyc_last_error() -> *const c_char;
    fn qwyc_n_features(model: *const RawModel) -> i64;
    fn qwyc_class_name(model: *const RawModel, label: i64) -> *const c_char;
    fn qwyc_decide_one_f64(
        model: *const RawModel,
        row: *const f64,
        label: *mut i32,
        steps: *mut i32,
        score: *mut f64,
    ) -> i32;
}

/// A loaded model. It does not change, so that threads may share it.
struct Model(*mut RawModel);

unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { qwyc_free(self.0) }
    }
}

fn text(from: *const c_char) -> String {
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

impl Model {
    fn load(path: &str) -> Result<Model, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        let mut model = ptr::null_mut();
        match unsafe { qwyc_load(path.as_ptr(), &mut model) } {
            0 => Ok(Model(model)),
            _ => Err(text(unsafe { qwyc_last_error() })),
        }
    }

    /// The class of a row, and the base models that it took.
    fn decide(&self, row: &[f64]) -> Result<(String, i32), String> {
        let width = unsafe { qwyc_n_features(self.0) };
        if row.len() as i64 != width {
            return Err(format!("a row has {} numbers; the model has {} features", row.len(), width));
        }
        let (mut label, mut steps) = (0, 0);
        match unsafe {
            qwyc_decide_one_f64(self.0, row.as_ptr(), &mut label, &mut steps, ptr::null_mut())
        } {
            0 => Ok((text(unsafe { qwyc_class_name(self.0, label.into()) }), steps)),
            _ => Err(text(unsafe { qwyc_last_error() })),
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: decide model.qwyc ROW...")?;
    let model = Model::load(&path)?;
    for argument in arguments {
        let row: Result<Vec<f64>, _> = argument.split(',').map(str::parse).collect();
        let (class, steps) = model.decide(&row.map_err(|error| error.to_string())?)?;
        println!("{class},{steps}");
    }
    Ok(())
}

fn main() {
    if let Err(message) = run() {
        eprintln!("{message}");
        std::process::exit(2);
    }
}
