"""Given names: which are spellings of one name, which are short for which, and which are plainly two names.

The table was written by hand and is far from complete. A name that is not in it is unknown, which is not the same as unlike.
Names of several languages that go back to one root (John, Juan, Ivan) are several names.
"""

from __future__ import annotations

from enum import Enum
from functools import cache, lru_cache

from perdure.engine.spelling import respelled

# Between semicolons stands one name: its spellings, and after a colon what people who bear it are called.
# A short form that is often a name of its own stands there by itself as well.
_MEN = """
aaron aron: ron ronnie az; abdullah abdallah; abdulrahman abdurrahman abdelrahman: abdul rahman; abhishek: abhi; abraham: abe
bram avi; adalberto: beto; adam: ad; aditya: adi; adrian adrien: ade; ahmed ahmad ahmet; alain; alan allan allen: al; albert:
al bert bertie albie; alberto: beto berto tito albertico; alejandro: ale alex jandro; alessandro: ale sandro alex; alexander
alexandre aleksander aleksandar aleksandr alexandr: alex sandy al xander lex sasha sascha shura ales alec alek; alexandros:
alekos; alfonso alphonse alonso: al poncho fonso; alfred: al fred freddie alf alfie; alistair alastair alasdair: al ali;
alonzo: lon lonnie zo; alvin: al; ambrose: brose; amir; anatoly anatoli anatoliy: tolya; anders; andre; andreas: andi dreas
andy; andrei andrey andrej: andryusha; andrew: andy drew; andrzej: jedrek; angel: angelito; anthony antony: tony ant; antoine:
tony titi; anton: toni tosha; antonio: tono toni antonino tonino nino tony; antonius: toon ton; aravind arvind; archibald:
archie baldie; arjun; arnold: arnie; arthur artur: art artie; arturo: turo; ashley: ash; athanasios: thanasis sakis; august:
gus augie; augustine agustin: gus tin; augustus: gus; balakrishnan: bala; barnabas: barney; barry; bartholomew: bart;
bartolomeo: meo; benedict: ben benny; bengt; benjamin: ben benji benny benjy; bernard bernhard: bernie barney bern; bogdan;
bohumil: bohous; boris: borya; bradley: brad; brandon; brendan; brian bryan brayan; bruce; bruno; burton: burt; caleb: cal
cale; calvin: cal; cameron: cam; carl karl; carlos: carlitos charly; casper caspar kasper jasper; cedric: ced; cesar; charles:
charlie chuck chas chaz charley chip; chester: chet; christian kristian: chris; christopher kristofer christoph christophe
kristoffer: chris topher kit kris stoffel; clarence; clark clarke; claude; clay clayton; clement: clem; clifford: cliff;
clinton: clint; clive; colin: col; conrad konrad: con; constantine konstantin constantin konstantinos: kostas kostya costa
dinos costel; cornelis: kees; cornelius: neil corny kees; craig; cristiano: cris; curtis: curt; cyril kirill: kirya; cyrus:
cy; dale; dalton; damian damien: dami; daniel: dan danny dani; darren; darryl daryl; david: dave davey davy davie; dean;
deepak dipak; demetrius: dimi; dennis denis: den denny; derek derrick; desmond: des; dexter: dex; diego; dieter; dietrich:
dirk; dimitrios: dimitris mitsos jimmy; dinesh; dirk; dmitry dmitri dmitriy dimitri: dima mitya dimitry; domenico: mimmo;
dominic dominik dominick: dom nick; donald: don donnie; douglas: doug dougie; duncan; dustin; dwight; earl; ebenezer: eben;
edgar: ed; edmund edmond: ed eddie ned ted; edouard: doudou; eduardo: edu lalo eddie duda; edward eduard: ed eddie ned ted
teddy eddy; edwin: ed eddie win; eli; elias: eli; elijah: eli lije; elliot eliot elliott; elmer; emanuel emmanuel immanuel:
manny manu; emil; emmanouil: manolis; emre; enrique: kike quique; ephraim: eph; eric erik erick: rick; ernest: ernie; ernesto:
neto; erwin irwin; ethan; eugene: gene; evan; evangelos: vangelis; evgeny evgeni yevgeny evgenij: zhenya; ezekiel: zeke; ezra;
fabio; faisal faysal; farid fareed; felix; ferdinand: ferdi; ferenc: feri; fernando: nando fer; filip; filippo: pippo;
florian: flo; francesco: franco cecco ciccio checco; francis: frank fran frankie; francisco: paco pancho kiko curro cisco
fran; francois: fanfan; frank: frankie; franklin: frank; frantisek: franta; franz: franzl; frederick frederic fredrick
frederik fredrik: fred freddie freddy rick fritz; friedrich: fritz fred; gabriel: gabe gabi; gaetano: tano; gareth: gaz;
garrett: gary; gary garry; gavin; gennady gennadi: gena; gennaro; georg jorg: schorsch; george: georgie jorgie; georgios
giorgos: yorgos george; gerald jerald: gerry jerry; gerard: gerry; gerardo: lalo; gerardus: gerard; gerhard: gerd; geronimo;
gerrit: gert; gheorghe: gigi; giacomo; gianluigi: gigi; gilbert: gil bert; gilberto: beto; gilles; giorgio; giovanni: gianni
vanni nanni giova; giuseppe: beppe peppe pino beppino; glenn glen; gonzalo: gonza; goran; gordon; graham graeme; gregor: greg;
gregory: greg gregg; grigory grigori: grisha; grzegorz: grzesiek; guenter gunter gunther guenther; guido; guillaume: gui;
guillermo: memo guille; gurpreet: guri; gustav gustave: gus; gustavo: tavo gus; guy; gyula; hamid hameed; hans: hansi; harish:
hari; harold: harry hal; harrison: harry; harry; harvey: harv; hassan hasan; hector; heinrich: heinz heiner; hendrik: henk
rik; henri; henry: harry hank hal; herbert: herb bert bertie; heriberto: beto; herman hermann: herm; hiram; horace; horst;
howard: howie; hubert: bert; hugh: hughie; hugo; humberto: beto; humphrey; hussein husain hussain hussayn; ian iain; ibrahim
ebrahim: ibo; ignacio ignatius: nacho iggy; igor: gosha; ike; ilya ilia; imre; ioannis: yannis giannis; ionut; ira; irving
irvin: irv; isaac izaak: ike zac; isaiah; isidore: izzy; ismail ismael; istvan: pisti; ivan: vanya ivo; jack: jackie jacky;
jackson: jack; jacob jakob: jake jaap kuba; jacques: jacquot; jaime; jake; jakub: kuba; jamal gamal; james: jim jimmy jamie
jem; jan: janek; jared; jaroslav: jarda; jason: jay; javier xavier: javi xavi; jean; jedediah: jed; jeffrey geoffrey jeffery:
jeff geoff; jens; jeremiah: jerry; jeremy: jem jez; jermaine; jerome: jerry; jeronimo; jerry; jesse; jesus: chuy chus; jethro;
jiri: jirka; joachim: jochen achim jo; joao: joaozinho; joaquin: quino; jochen; joel; johan: jo; johann: hans hannes;
johannes: hans hannes jo jannes; john: johnny jack jon; jonas; jonathan johnathan jonathon johnathon: jon jonny nathan jonty;
jordan: jordy; jorge; jose: pepe chepe ze pepito; josef joseph: joe joey jo sepp jos pepa pepik; joshua: josh; josiah: joe;
josip; jozsef: joska; juan: juanito juancho; jude; juha; julian: jules; julio; julius; jurgen juergen; justin; kai kay; karel:
kaja; karim kareem; karoly: karcsi; karthik kartik; keith; kendrick: ken; kenneth: ken kenny; kevin: kev; khalid khaled; klaus
claus; krzysztof: krzysiek; kurt; kyle; ladislav: lada; lajos; lamar; lance; lars: lasse; laszlo: laci; laurence lawrence:
larry laurie lawrie lars; lauritz; lech; lee leigh; lemuel: lem; lennart; lennox; leo; leon; leonard leonhard: len lenny leo
lennie; leonardo: leo; leonid: lyonya; leopold: leo poldi; leroy; leslie: les; lev: lyova; levi; lewis: lew; liam; lincoln:
linc; lionel: leo; lloyd; lodewijk: lode; logan; lorenzo: renzo enzo; louis: lou louie; lubomir: lubos; luca; lucas lukas;
ludwig: lutz; luigi: gigi gino; luis: lucho; lukasz; luke; luther; lyle; maciej: maciek; magnus; majid majeed; malcolm: mal;
manfred: fredi manni; manuel: manny manolo manu lolo; marc mark; marcel; marco marko; marcos; marcus markus: marc; mario;
marius; marshall: marsh; martin: marty; marvin: marv; mason; mateo matteo; mathieu matthieu: mat; matteus; matthew mathew:
matt matty; matthias mathias matias: matze matti; maurice: mo moe; mauricio: mau; maurizio: mau; max; maxim maxime maksim: max
maks; maximilian maximillian: max maxi; mehmet: memo; melvin: mel; merlin; micah; michael: mike mick mickey micky mikey mitch;
michal: michas; miguel: migue; mihaly: misi; mikael: micke; mikhail mihail: misha; milan; miles myles; miloslav: milos;
miroslav: mirek; mitchell: mitch; mohammed muhammad mohamed mohammad mohamad muhammed muhamed mehmed: mo; montgomery: monty;
morris: mo; mortimer: mort; morton: mort; moses: moe; murat; mustafa mostafa mustapha; nasser nasir naser; nathan: nate nat;
nathaniel nathanael: nate nat nathan; neil neal niall; nelson; newton: newt; nicholas nicolas nikolas nickolas: nick nicky
nico niko; nicolo niccolo: nico; niels nils; nigel; niklas nicklas: nicke; nikolai nikolay nikolaj: kolya nik; nikolaos:
nikos; noah; noel; norbert: bert norb; norberto: beto; norman: norm; octavio; oleg; oliver: ollie olly; olivier; omar umar;
ondrej: ondra; orlando: lando; osama usama; oscar oskar; oswald: oz ozzie; otis; otto; owen; pablo: pablito; panagiotis: takis
panos; paolo: paolino; pascal; patricio: pato; patrick: pat paddy rick; paul: paulie; pavel: pasha pavlik; pawel; pedro:
pedrito; per; percival: percy; perry; peter: pete petey; petr: petya; petros; philip phillip philipp phil: phil pip flip;
philippe; pierre: pierrot; pieter: piet; pietro: piero; piotr: piotrek; pradeep pradip; prashant prashanth; primo; quentin:
quin; quincy; rafael raphael: rafa rafe raf rafi; raffaele: lello; rainer reiner; rajendra: raj rajen; rajesh: raj; rajiv
rajeev: raj; rajkumar: raj; ralph ralf; ramakrishnan: ram; ramon: moncho; randall: randy; randolph: randy; rashid rasheed;
raymond: ray; reginald: reg reggie; reinhold: reini; rene; reuben ruben: ben; rex; reynaldo: rey naldo; rhys reece; ricardo
riccardo: ricky rico cardo; richard: rick ricky rich dick richie dickie; rigoberto: beto; robert: bob bobby rob robbie bert
robby bobbie; roberto: beto berto tito robi; robin; roderick: rod roddy; rodney: rod; rodrigo: rodri; roger rodger; roland;
rolando: rolo; roman: roma; romeo; ronald: ron ronnie ronny; ronaldo: naldo; rory; roscoe; ross; roy; rudolf rudolph: rudi
rudy dolf; rufus; rupert; russell: russ rusty; ryan; said saeed sayed; salim saleem; salvador: chava; salvatore: toto turi;
samir sameer; samuel: sam sammy; sandeep sandip; sandor: sanyi; sanjeev sanjiv; santiago: santi chago yago; scott: scotty;
sean shaun shawn shon; sebastian: seb bas basti seba sebi; serge; sergei sergey: seryozha; sergio; sergiu; sherman: sherm;
sherwin; shiva shiv; siddharth siddhartha: sid; sidney sydney: sid syd; siegfried: sigi siggi; silas: si; simon; solomon: sol;
spencer: spence; spyridon: spyros; stanislav stanislaw: stan slava stas staszek; stanley: stan; stavros; stefan stephan:
steffen stef; stefano: ste; stephane; stephen steven stefen: steve stevie; stuart stewart: stu; subramaniam subramanian: subbu
mani; sven; sylvester: sly; tadej; tadeusz: tadek; tariq tarek tareq; terence terrence: terry; thaddeus: thad tad; theodore
theodor: ted teddy theo; theodoros: thodoris; theophilus: theo; thiago tiago; thomas tomas: tom tommy thom tomek; thorsten
torsten; timothy: tim timmy; tobias: tobi toby; tod todd; tomasz: tomek; travis; trevor: trev; tristan; tyler: ty; umberto:
berto; uwe; vaclav: vasek; valentin valentine: val; vasileios vassilios: vassilis; vasily vasili vassily: vasya; vicente:
chente; victorio; vikram: vik; viktor victor: vic vitya vik; vincent: vince vinnie vinny; vincenzo: enzo; virgil: virge;
vitaly vitali: vitalik; vladimir wladimir: volodya vova vlad; vladislav: vlad slava vladik; vyacheslav viacheslav: slava;
waldemar: waldi; walid waleed; wallace: wally; walter: walt wally; warren; wayne; wesley: wes; wilbur wilber: will; wilfred
wilfried: wilf will fred; wilhelm: willi willy helmut; wilhelmus: wim; willem: wim pim; william: bill will billy willie liam
willy; winston: win; wojciech: wojtek; wolfgang: wolf wolfi; wolfram: wolf; woodrow: woody; yahya yehia; yuri yury yuriy juri:
yura; yusuf youssef yousef yusef yousuf: yus; yves; zachary zachariah zackary: zach zack zac; zbigniew: zbyszek; zdenek;
zebulon: zeb
"""
_WOMEN = """
abigail abbigail: abby abbie gail abi; ada; adela; adelaide: addie; adele; adriana; adrienne; agatha: aggie; agnes: aggie;
agnieszka: aga; aikaterini: katerina; aileen eileen ilene; aisha ayesha aysha aicha; alejandra: ale jandra; alejandrina;
alessandra: sandra ale; alexandra aleksandra alexandria: alex sandra sandy lexi ali sasha alexa ola olka xandra; alexis: lexi
alex; alice; alicia: ali; alison allison alyson: ali allie; alma; almudena; althea: thea; alzbeta: beta; amanda: mandy manda;
amelia: amy millie mia; amina aminah; amira; amy; ana; anastasia anastasiya: nastya stacy stasia ana; anastasija; andrea:
andi; angela: angie; angeliki: kiki; angelina: angie lina; anita; ann anne: annie nan; anna: annie anya ania anka anni nan
anja; annabel annabelle: anna bel belle; annette: nettie; annika; antonella: anto; antonia: toni tonia; anuradha: anu;
anushka: anu; april; arabella: bella ara; ariana arianna: ari; arlene; ashley: ash; assunta: susy; astrid; audrey: aud;
augusta: gussie; aurelia; aurora: rory; ayse ayshe; babette: babs; barbara: barb babs barbie bobbie basia bara; beatrice
beatrix beatriz: bea trixie bee trish bia; beatrijs: trijn; belinda: bel linda; bernadette: bernie detta; bernice: bernie;
bertha; bethany: beth; bettina: tina betty; beverly beverley: bev; birgit: gitte; blanca; bonnie; bozena: bozka; brenda;
brianna briana: bri; bridget brigid: biddy bridie; brigitte: gitte gitta; brittany: britt; brooke; caitlin kaitlyn katelyn
caitlyn kaitlin catelyn; calliope: popi; camilla camila: cam millie cami; camille: cam; candace candice: candy; carla karla;
carlotta: lotta lottie; carmela; carmen: carmencita; carol carole karol; carolina: caro lina; caroline carolyn carolin: carrie
caro lina; cassandra: cassie cass sandra; catalina: cata lina; catharina: trijntje toos; catherine katherine kathryn catharine
katharine katherin cathryn: kate kathy cathy katie kat kay kit kitty katy cat trina; cecile; cecilia: cece cec celia cissy;
celeste; celia; charlene: charlie; charlotte: lottie charlie lotte charly carly; chelsea; cheryl sheryl; chiara; chloe khloe;
christabel: bel; christiane: chris; christina kristina cristina: tina chris chrissy kristi chrissie tini; christine kristine:
chris chrissy tina; claire clare clair; clara klara; clarissa: clare; claudia: claudi; clementine: clem clemmie; cleopatra:
cleo; colleen; concepcion: concha conchita conchi; concetta: tina; constance: connie; consuelo: chelo; cordelia: delia;
corinne: cori; cornelia: nelly conny; courtney; crystal krystal kristal chrystal; cynthia: cindy; daisy; daniela: dani;
danielle: dani; daria darya: dasha; darlene: dar; deborah debra debora: deb debbie debby; deepika dipika; delia; delilah:
lila; denise; desiree: desi; despina; diana; diane dianne; dolores: lola dolly; dominique; donna; dora; dorothy dorothea: dot
dottie dolly thea dora; edith: edie; edna; ekaterina yekaterina: katya katyusha; ekaterini; elaine; eleanor elinor eleanora:
ellie nell nora nellie ella; elena: lena alyona ela; eleni: lena; eleonora: nora ele; elisa: eli; elise; elizabeth elisabeth:
liz beth betty lizzie eliza bess betsy libby lisa liza elsie lizzy bette ellie lisbeth liesl sisi els liesbeth; ella; ellen:
nell ellie; eloise; elvira; elzbieta: ela; emilia: emmy mila; emily emilie: em emmy millie; emma: em emmy; emmeline: emmy;
erica erika; erin; ernestine: ernie tina; erzsebet: erzsi; esperanza; estella estelle: stella essie; esther ester: essie;
ethel; ethelinda; eudora: dora; eugenia: genie gena; euphemia: effie; eva: evie evi; evangeline: eva evie; evdokia: dusya;
eve: evie; evelyn: evie; faith; fatima fatimah; faye fay; felicia: fee; felicity: flick; fiona: fi; fleur; florence: flo
florrie flossie; frances: fran fanny frankie francie; francesca: fran chicca cesca; francisca: paca fran pancha; francoise;
franziska: franzi; gabriela gabriella: gabi gaby gabby; gabrielle: gabby gabi; gail gayle; galina: galya; geeta gita; gemma
jemma; gena; genevieve: gen ginny ginette; georgia: georgie; georgiana: georgie; georgina: georgie gina; geraldine: gerry;
gertrude gertrud: trudy gertie trudi; gillian jillian: jill gill jilly; giovanna: gianna vanna; gisela: gisi; giulia;
giuseppina: pina; gloria; grace: gracie; graciela: chela; greta; gretchen; guadalupe: lupe lupita; gwendolyn gwendoline: gwen
wendy; gwyneth: gwen; hannah hanna; harriet: hattie harrie; hayley haley hailey hayleigh; hazel; heather; heidi; heike; helen:
nell nellie; helena: lena leni hela; helene: leni; henrietta: hettie etta; hermione; hester: hettie hetty; hilary hillary:
hil; hildegard: hilde; holly; hope; ida; ilona: ili; imogen: immy; inga; ingeborg: inge; ingrid: inga; inmaculada: inma;
irena: irka; irene: renie; irina: ira; iris; isabel isabelle ysabel: izzy belle isa issy bel chabela; isabella: bella izzy
isa; ivana; jacinta; jacqueline: jackie jacqui; jadwiga: jadzia; jana; jane jayne: janie jenny; janet: jan; janice janis: jan;
jarmila; jasmine jasmin yasmin yasmine: jas jazz; jean: jeannie; jeanine janine; jeanne: jeannette; jeannette jeanette: jean
nettie; jemima: mima; jennifer: jen jenny jenn jennie; jessica: jess jessie; jill; joan: joanie; joanna: jo asia joasia;
joanne: jo; jodie jody jodi; johanna: hanna jo hanneke; jolene; jordana; josefa: pepa pepita chepa; josefina: fina pepa;
josefine: josi; josephine josephina: jo josie fifi sefa; joy; joyce; juana: juanita; judith: judy jude judi; julia juliya
yulia julija: jules yulya julie; juliana julianna: jules; juliane: jule; julianne: jules; julie; juliet juliette: jules; june;
justine; jyoti jyothi; karen karin: kaz; katalin: kati; katarzyna: kasia; katharina catarina caterina katarina: kathi kati
rina trina katja; kathleen cathleen: kathy kath kay cathy; kavita kavitha; kaya; kelly kellie; kelsey; kendall; kendra; kerry
kerri; khadija khadijah; kimberly kimberley: kim kimmy; kirsten kirstin kerstin: kirsty; konstantina: dina; kristen kristin:
kris kristi; krystyna: krysia; kseniya ksenia: ksyusha; kveta; lakshmi laxmi; larisa larissa: lara; laura lora: laurie lori;
laurel; lauren: laurie lori; lavinia: vinnie; layla leila laila leyla; leah lea; lena; leonie: leo; leonor leonora: nora;
leslie lesley: les; leticia: leti; letitia: tish lettie; lieselotte: lilo; liliana: lili; lillian lilian: lily lil lilly; lily
lilly; linda: lindy lin; lindsay lindsey lyndsey; lisa; lois; lorena: lore; lorraine: lori raine; louise: lou; lourdes: lulu;
lucia: lucy luci; luciana: lu; lucille lucile: lucy; lucinda: lucy cindy; lucrezia; lucy lucie; luigia: gina; luisa: lulu;
luzia; lydia; lynn lynne; lyubov: lyuba; lyudmila ludmila ludmilla: lyuda mila luda lida; mabel; madeleine madeline madelyn:
maddie mady maddy mado; madhuri: madhu; magdalena magdalene: magda lena leni maggie; maite; malgorzata: gosia; manuela: manu
ela; marcela marcella; marcia marsha; margaret: maggie meg peggy marge madge daisy greta rita margie peg mags; margarete:
gretel grete; margarita margarida: rita marga margo; margherita: rita; margit: manci; margot margo; marguerite: margot; maria:
mia ria mari mitzi masha marusya manya marijke; mariana marianna: mari; marianne; maribel; maricela; marie: mimi; mariela;
marietta: etta; marilyn: lyn mary; marina: marinka; marion marian: mari; marisol; marjorie: marge margie; marketa: maki;
marlene: lene; martha marta; martina: tina; mary: molly polly mamie maisie; maryam mariam meryem; marzena; matilda mathilda
mathilde: tilly tilda mattie; maureen: mo; maxine: max; maya; mechthild; meena mina; megan meghan: meg meggie; melanie: mel
melly; melinda: mindy mel; melissa: mel missy lissa; melody: mel; mercedes: merche meche merceditas; mercy; mia; michelle
michele: shelly chelle micki; mildred: millie; milena: mila; millicent: millie; minerva: minnie; miranda: randi mandy; miriam
myriam: mimi miri; molly; monica monika: moni nika; monique; montserrat: montse; morgan; muriel; myra; myrtle; nadezhda: nadya
nadia; nancy: nan; naomi; natalia natalya nataliya: natasha nata natalka talia; natalie nathalie: nat nattie nath; natasha
natascha: tasha; natividad: nati; nell; nicole nichole: nicki nikki nic; nina; noor nour nur; nora norah; octavia: tavy;
odette; oksana; olga: olya olia; olivia: liv livvy ollie; ophelia; ottilie: tilly; paloma; pamela: pam pammy; panagiota:
giota; paraskevi: voula; parvati; patricia: pat patty trish patsy tricia patti trisha; paula; pauline: polly; pearl; penelope:
penny nell; petra; philippa phillipa: pippa pip; philomena: mena; phoebe; phyllida; phyllis; pilar; polina: polya; pooja puja;
portia; priscilla: cilla prissy; priyanka: priya; prudence: prue; rachel rachael: rach; ramona: mona; raquel; rebecca rebekah:
becky becca beck; reena rina; regina: gina reggie; reina; renata: rena; renee; rhoda; rhonda: ron; rita; roberta: bobbie
robbie; robin robyn; rosa: rosita; rosalia: lia; rosalie: rosie; rosalind: roz ros; rosamund: roz; rosanna roseanne; rosario:
charo chayo; rose: rosie; rosemary rosemarie: rosie rose romy; roxanne roxana: roxy; ruby; ruth: ruthie; sabine: bine;
sabrina: bri; sadie; sally; salome; samantha: sam sammie; sandra; sara sarah: sally sadie; saskia; scarlett scarlet; selena
selina; selma; seraphina: fina; shannon; sharlene; sharon: shaz; sheila; shelby; shelley shelly; shirley: shirl; shruti
shruthi sruthi; sian; sibyl sybil; sigrid: siri; silvia sylvia: syl silvi; simone; sinead; siobhan; skye sky; socorro: coco;
sofia sophia: sonya sonia zosia sofi soph; soledad: sole; solveig; sophie: soph; stacey stacy; stanislawa: stasia; stella;
stephanie stefanie: steph steffi stevie; sunita suneeta sunitha; susan: sue susie suzy susi; susanna susannah: sue susie suzy;
susanne suzanne: sue susie suzy sanne suse susi; svetlana: sveta lana; swati swathi; tabitha: tabby; tamara: tammy toma tami
mara; tanya tania tanja; tatiana tatyana tatjana: tanya tania; temperance: tempy; teodora: dora; teresa theresa: terri tess
tessa terry tere teresita; tereza: terka; tess tessa; thelma; theodora: dora thea theo; therese: resi; tiffany: tiff; tracy
tracey; trinidad: trini; trudy; una oona; ursula: uschi ulla; valentina: valya tina; valeria: lera; valerie: val; valeriya:
lera; vanessa: nessa; vasiliki: vaso; vera; verena: vreni; verity; veronica veronika: ronnie vero vroni nika verca; veronique:
vero; victoria viktoria: vicky tori vic vicki vika tory; viola: vi; violet violetta; virginia: ginny ginger ginnie; viveca;
vivian vivien vivienne: viv; waltraud: traudl; wanda; wendy; wilhelmina: mina willa minnie billie mien; wilma; winifred:
winnie freda; winona; xiomara; yelena: lena alyona; yelizaveta elizaveta: liza; yesenia: yesi; yolanda: yoli; yvette; yvonne;
zaynab zainab zeinab; zelda; zoe zoey; zofia: zosia; zsuzsanna: zsuzsa; zuzana: zuzka
"""
# Names of all kinds without a short form here: two of them, however alike, are two names.
_MORE_MEN = """
abdul abdullah ahmad ahmed ajay akash akira ali amit anand anil ankit aravind arjun arun ashok ayan aryan bilal bjorn chen
deepak dinesh farid faisal ganesh gopal hari haruki hassan hiroshi hussein ibrahim ismail jamal jayesh jin kamal karan khalid
kiran kenji krishna kumar mahesh manish manoj mehmet min mohan mukesh mustafa naresh naveen nikhil nitin pradeep prakash
praveen rahul raj rajesh rakesh ram ramesh ravi ricky rohan rohit sachin sandeep sanjay satish shiva sunil suresh takashi
tariq varun vijay vikas vikram vinod vivek yusuf youssef joseph kenta ryu hiro ahmet emre murat can mikko jukka pekka antti
olli ville pierre luc benoit thierry laurent didier gilles jacques marcelo thiago tiago rui nuno vasco duarte bruno caio
jorn jost knut lennart nils olaf ole rolf rasmus soren steen torsten ulf ulrich udo volker zoran goran dragan marek radek
ondrej tomislav zoltan laszlo istvan gabor andras balazs attila dean shane blake chad cody cole dylan hunter jaden lance
nolan preston quinn reed rex roy sterling tanner wade zane jay jon ray rob ron tim tom ben dan don sam bob bill joe jim
"""
_MORE_WOMEN = """
aisha amina anjali ananya asha ayesha bhavna deepa deepika divya fatima farah geeta gita indira jyoti kavita kavya lakshmi
lata leila layla maryam meena megha naomi neha nisha pooja priya priyanka radha rani rekha rita rohini sana sarita shanti
shreya sita sneha sunita swati uma usha vandana yuki yuko akiko aiko emi haruka keiko kumiko mai mariko michiko naoko
sakura tomoko mei ling xiu jing yan ebru elif zeynep fatma aino anneli kaisa mari aurelie beatrice camille celine chantal
coralie elodie ines leonie maelle manon noemie ondine oceane solene federica giorgia ilaria ludovica beatriz fernanda leticia
luciana thais anke antje britta elke frauke gesa gudrun henrike ilse jutta katrin maren silke svenja ulrike ute wiebke agata
beata dorota ewa halina hanna iwona jolanta krystyna lidia malwina zofia ilona eszter katalin zsofia brooke autumn crystal
dawn destiny hailey harper jade kayla kaylee mackenzie madison makayla paige piper savannah serena sienna skylar venus willow
amber bella beth gail jen kim liz mandy meg nell peggy sue tina
"""


class Tie(Enum):
    """What the table says of two given names."""

    SPELLING = "another spelling of the same given name"
    NICKNAME = "nickname of the other"
    OPEN_NICKNAME = "nickname of the other, and of more names"
    SHARED_NICKNAME = "both nicknames of one name"
    RESPELLED = "related to the other, spelled another way"
    UNRELATED = "two given names"
    UNKNOWN = "not in the table"


class _Table:
    def __init__(self) -> None:
        self.lines: dict[str, set[int]] = {}
        self.short_for: dict[str, set[int]] = {}
        self.men: set[str] = set(_MORE_MEN.split())
        self.women: set[str] = set(_MORE_WOMEN.split())
        number = 0
        for text, bearers in ((_MEN, self.men), (_WOMEN, self.women)):
            for entry in text.split(";"):
                heads, _, nicknames = entry.partition(":")
                for name in heads.split():
                    self.lines.setdefault(name, set()).add(number)
                for name in nicknames.split():
                    self.short_for.setdefault(name, set()).add(number)
                bearers.update(heads.split(), nicknames.split())
                number += 1
        self.known = self.men | self.women
        self.respelled: dict[str | None, list[str]] = {}
        for name in sorted(self.known):
            self.respelled.setdefault(respelled(name), []).append(name)


@cache
def _table() -> _Table:
    return _Table()


def tie(one: str, other: str) -> Tie:
    """How two different folded given names are related."""
    table = _table()
    none: set[int] = set()
    heads_one, heads_other = table.lines.get(one, none), table.lines.get(other, none)
    short_one, short_other = table.short_for.get(one, none), table.short_for.get(other, none)
    if heads_one & heads_other:
        return Tie.SPELLING
    if short_one & heads_other or short_other & heads_one:
        nickname = one if short_one & heads_other else other
        # Tony is Anthony or Antonio, in one family never both; Alex may be a brother or a sister, Jack may be Jack.
        return Tie.OPEN_NICKNAME if gender(nickname) is None or nickname in table.lines else Tie.NICKNAME
    if short_one & short_other:
        return Tie.SHARED_NICKNAME
    if one in table.known and other in table.known:
        return Tie.UNRELATED
    return Tie.RESPELLED if blocks(one) & blocks(other) else Tie.UNKNOWN


def is_known(name: str) -> bool:
    """Whether the table has this folded given name."""
    return name in _table().known


def gender(name: str) -> str | None:
    """`f` or `m` where the table knows bearers of one kind only."""
    table = _table()
    man, woman = name in table.men, name in table.women
    return None if man == woman else "m" if man else "f"


@lru_cache(maxsize=16_384)
def blocks(name: str) -> frozenset[int]:
    """Numbers of the names that this folded name is or stands for: related names share one. Unknown ones are respelled."""
    table = _table()
    names = [name] if name in table.known else table.respelled.get(respelled(name), [])
    return frozenset().union(*(table.lines.get(one, ()) for one in names), *(table.short_for.get(one, ()) for one in names))
