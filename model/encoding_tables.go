package model

// Code below is made by a program from what real tokenizers do with some three
// megabytes of texts; see docs/limits.md#what-tokens-are-counted-with. Do not edit it by
// hand.

// What a step from one character to the next begins of tokens (Pairs), and by what that
// is multiplied with how far in the run it is (Runs); see [Encoding].
const (
	o200kPairs = "" +
		"2oooonmjoojnoXoooooooooooooonooo?ooo@o,9imm:,m1]9mikZondi~2Loooam\\ocfK@dooooooooonomZ[_fno?oo\\hl,Gcmm:,m1*9miJZoneii" +
		"oo/ookmJogUnkooomoooooooomnad[oonooU3o,JHmm:,mJ*VmceZm_jhi  o+ @m        !  7    '   !    /      !\"mm  m   m KH6.;\"h" +
		"oooo omiloob3hjno[UonZnNognQmoFj?mooiostMmmoimiijmbidnooii$@i4*Qm6od94DPRcZRUkboNNoGNQKKF[?nOn,o,6Cmm:,m1*9mMJZkRXDi" +
		"2LIY3am6D?943HIUIRU^^INN8GNQK=F[?fG1,>,6Cmm:,m1*9mMJZkRXDiofIm!am$\"?943AQMIRU!f4NN8 `QK A[?fZ1,`,6Cmm:,m1*9mMJZkRXDi" +
		"nnoo am6$#$\"(MR!Z; &'! /#X ^W)#!\"?5%,*<6Cmm:gm1J9mMJ[GRllilooo$am'G >R3EIUIRU^O`KN8GNQK=F[?gO1,>,6Cmm:,m1*9mMJZkRXDi" +
		"mnfo3am6hF9;3N+USRU^k@NN8GNQb=Q[?fG!,E,6Cmm:,m1*9mMJZkRXDijfln!am6D79/3A>MIRU4*INN4GNQKTF^<fG1,`,6Cmm:,m1*9mMJZkRXDi" +
		"`kco%am6J$94 WCULRU^^INN8DNQK=F[nTM1,>,6Cmm:,m1*9mMJZkRXDi;nno\"amG53B%>9A\"NL ,(%%'\"G52'.%#A,f'D/1PVmm:<m`*9mTJZkRZDi" +
		"NOol am  i.   3  LU%c%NR;GGOK $\\E   4>%[&mmeimgicm3MZkV`jiSQXo am#Y<9.:S#\"-G .\"1! @R@EK24$If;.+7,6Cmm:,m1h9mJJZ?gk@i" +
		"nomo am1i?A43eO?!R lk#oSS?JQKkQn?Fn1,o,ghmm:im1f9miJeonokiR`no!am6:?ha39D:I%MAYSS'89RQKADI?fj;,>,6Cmm:,m1*9mMJZkRXDi" +
		"Rdoo am6$?A(3A@HW@UVdVKN(GNQKS3]?f`>,>,6fmm:,m1*9mMJZkRXDi+Coo/am6G?6[3Q;KWlU!^e]CT0!QK=8a?BmFgT,/Cmm:4m16ZmcJZkRXdi" +
		"$%oo am6.\".*3H+#ER#V  5N\"GNWOM,V?!Q.,R,6Xmm:)m1T9mMJZkchWiI@oo%nm61!$032N@+*;5! NW^A!-,m>nO&n ,O,6Cmm:emJ99mMJZkZbfi" +
		"Rmoo am6!%%!3ANQ2MQf_  `) N=K (7Nf&!P>,6Omm:,m1*9mMJZkRXDi[jOo am62?94+f?LIR-T\\,QC+GNTK=?_?fGQ,\",6Cmm:,m1*9mMJZkRXDi" +
		"eYkn/am D?9M3bCUIRUU^ NN#\"G!K=F[?fG6,>,6Cmm:,m1*9mMJZkRXDiK9oo:am6 ?*#3\":UIl^WHQNN>\" Q@##`h^?#,R,6Cmm:,m1*9mMJZkRXDi" +
		"gdno am6G?#4&B)8eV&.#<)0 !HTO\"9n?hW(,>,6[mm:`m1i9mfJZmZmaihWLo!am68?A43MIAIRU^6Y!N8G-?K=Ae?fS1,>,6Cmm:,m1*9mMJZkRXDi" +
		"dli[3am6ICP:3`IUIR_^^]NN8GN^K=F[?WN1,>,6Cmm:,m1*9mMJZkRXDi_mok'ami!kA*3!8UjGK?GE$NnGNQkFX!+%!V,>,BCmm:hm19LmMJZkZpei" +
		"UkS[!am6&?143FIXIRU`??NN8GNQKQ<b?ff14>,6Cmm:,m1*9mMJZkRXDikhIo am6>?941U#&8$ T$I!\"&.8LK!J@?]n>,O<6Cmm:,m`*VmMJZkRXDi" +
		"jUab3am6L?R4:TAUIRUU^mNQ8GNQ];1[?f[18E,6Cmm:,m1*9mMJZkRXDi(*no$am=[?+43P%HDR ^#=PN8[N[K;Bf?9k/,I,LCmmP,m199m]JZkRXDi" +
		"oooo!am\\0k/B@QWGnX o$)[8YlRjoY\\$vk6LdUZQ[mm:AmJ\\LmhJRon^iindno amb'?*\"e@SUojU^[:YN8GNQDeI\\?hJ!,\",6Cmm:,m1*9mMJZkRXDi" +
		"NlNo am6D?943=IWIRUl_I_P8,NQKDK[?fh1 >,6Cmm:,m1*9mMJZkRXDiBLIo amg)??4%RG(QN\"77 *#!GJK<E!]?C%3,>,6Cmm:,m1*9mMJZkRXDi" +
		"GLcobam6J?943NIUIRU^^ZNN8GNQK=F[?fG1,>,6Cmm:,m1*9mMJZkRXDi/LIomam6f?943HIkjRmmnIlS8GNQK=Ie?fW1,>,+Cmm:,m1*9mUJZkRXDi" +
		"jlNo-am6[?9:3HIXkR#^3I=NSGNQKGF[?fMN,H,6=mm:im1*9mM]ZkRXDi2LIY3am6D?943HIUIRU^^INN8GNQK=F[?fG1,>,6Cmm:,m1*9mMJZkRXDi" +
		"2LIY3am6D?943HIUIRU^^INN8GNQK=F[?fG1,>,6Cmm:,m1*9mMJZkRXDi2LIonam6D?943HIgXRk^gWaN8GNQ[=F[?iG1,>,6Cmm>,m1*9mMJZkRXDi" +
		"2LIonam_j?943lOnoRoooko]aGN\\K=Fk?fS1,>,6imm:-m1*9miJZkRXDi2LIY3am6D?943HIUIRU^^INN8GNQK=F[?fG1,>,6Cmm:,m1*9mMJZkRXDi" +
		"2LIooam6D?943fIlIRU^oinN8GNQKQF[?fG1,>,6Cmm:,m1*9m[JZkRXDi2LIo&amB[?943HImhRoidNnN8GNQK=F[?gG1,>,6Cmm:,m1-9mMJZkRXDi" +
		"2LIooam6D?943HIjIRlinInN8GNQK=Fa?fG1,>,6Cmm:,m1i;mMJZkRXDi2LIY3am6D?943HIUIRU^^INN8GNQK=F[?fG1,>,6Cmm:,m1*9mMJZkRXDi" +
		"RnIo3am6D?943VIK_R'09ITN_GNQK=F[?i^1,>,cCmm:Zm)*9mfJa$Rffi2]Iolam6D?943HIUIRW^eINN8GNQK=F[?fG1,>,6imm?,m1*9mM>dmRXD~" +
		"2LIonam6f?943HIiIR_^iINNZGNQK=Ff?fU1,>,6Cmm:,m199mi~gnRXDgjo^m am6^?943HOUnRU^aI]NSGNQKEFg?fo1<>,6Cmm:,m1*9m6~p=[UDi" +
		"<m^odam6Z?943HIamRU^aWnNHGNQKLFg?fn1,>,6Cmm:,m1*9mTJZoLpDi2RIooam6m?943MIUoRU^eb_NlGNQKkFn?fM1,>,6Cmm:,m1*9miJ`omXDi" +
		"2LXomam6m?943OnnnRohoinNJGNaK=Fl?fG1,>,6Cmm:,m1*9mdJZkRXTi2LIn>am6D?943HIUIRU^^INN8GNQK=F[?fG1,>,6Cmm:,m1*9meyikRXDn" +
		"%   9\" \"!\"    1 4   ! \"!!!,&43#?8N(!C!U@!TT&<B'IF0 @':-0\"9h %) !@0#4;\"$ \"?J>!&/+A!\"0/?'63%=@),L&$>'(B)#G%%( *$%/.4)!" +
		"! 1+!  !-$% $,\">2+$\"1E#>@%2K\"0=$*!&9L:#F16FK\"J& .>0\"7%)QM##&)75U:B&FP@!J?B%K--@-\"I315 $K1P=*$   !  $.       %   @ F " +
		"2 -EG:\"3C5*4!1ML*>DJ #.PAA)Q-!C)!;&D*0%:F'1U?C%'*A,N3P).G!!!-)':9!C9#+-4%\"%49D H)!G&!=$;+;@%.4#&57\".1b9:$A+E\" \"( E01" +
		"%0>$#/AJ! )4@=#9&#  4\"!)#!    & 4  # \" %!)#(',!?0 (F,\"'-!\"=\"  %.16+a=9V$ORAC@PR!(=<D?;?. O:H)N&=\"$!4!4&I%;&\"\"5/$\"!)#" +
		".4%P-8)4#41\"&\\!2-2%&(!! )7#O-3.E&'#,7 #0,1&:\"\"P\"\"\"%I*#\"/#!! !!!?\"(#   )!K   J3.#0#!@6F R$G&JPM$G(6B>L9@\\E>;3&KO.!R*$" +
		"&D:G>!!8U$+,LM 23[#8+2(=U>,RQL'O?&[LP$)TT0!:<I1\"/Y&O-^3'& $#R&$\"QK;Y$)5UGM%HN.&Q5A]9EPR:R'+J2K(#+ ! .$ (#(\"   ' +   " +
		"& (  )&.+/$3\"0$/&$)-&86,$2\"0 !!.#6!(!') (5 \"*.)\"2&) +,2(#,&\"%' \"++#. +$)%0$&')+'0 0,%\"&!+! 6B>/$\" .'' \"!4$, #,!/\"$*\"" +
		" 7!D++\"0 #:&0 )*-! 3.)/7!6.$,>6!- /%?,,3)!%4=E\",60!B4#$0:(5\"%#+($ @*-+$!#%  \"! /'4\"   ! , ! - 3 = *''3!$-3/\"(0>/09A," +
		" $7+\"$A?6'6<$7,+(8-2(75)>084:+1<-:'/%, ',(\"$7)+/!877!,#!%7%9$&2\"#4$'*37!)+'!$)%'%!)))<2*( \"# 1+1('.()1-=%\"\"$!2!*'+& " +
		"2!'3&7!   , = !\"!&!!3A(8\"(-4.0!\"$ %#$%-$#%$4/9&C;/+*0C::3?9 .54:$$45  >A88$*'%!//7+6\"\"!$!&0!$ &#%2 ;$-$  *4!*;\"!$:!#" +
		"#9\" %,*61*#,'3#(7!+3*)\"&#!:\"1!')$4\"., $! ) A!:( \" =$:   %!$ -$#/&.#<#-\"C64'5+!;2 +\"*-.?7\"#$%*,2#&9+75! .9 3 19 %0>=2" +
		"71%8:>0?3\"!=A(71%&?:; /1\"<\":;71;<9$54!8#B2#2;:** /#>:2$535'>:0.$/=78(07('  \""
	o200kRuns = "" +
		"-----------------;GHB=;;0A792120-  e  d  d !Z$%I-/\"8$/!@%+!D\"0\"5-$0--------------,./..//------------------------.%&&" +
		"&&&&&&&&&&&&-((--------------&),-----------/-***************-'''''''''''''''-%''''''''''''''-%/,,,,,,,,,,,,,-%,./..-" +
		"---------!).............- -------------.-\"---------------...............-#E()))*+++++,,0-!%---........./-\"-,--------" +
		"-----%'--------------,//////////////-'++++++++++++++-$'++++,:,,--/-2-1).............-+00000000000000-)))))))))))))))" +
		"--(0)0,-,,,,,,,,-8\"/////////////-&/-/-,.........)$$$$$$$$$$$$$$$- -.............- 9--------------(,,,,,,,,,,,,,,.&''" +
		"''''''''''''-%2*/*-,,,,,,,,,,&&&&&&&&&&&&&&&,)1+++++++++++++.\"%.''''''''''''---------------------------------(.)1('9" +
		"$\"&%*(,&.&%.,/01+('&,%#%----------------.%)3-.1%#'******.\"&**1&,(&&&&&&&.(*-+0+,))'&#&)&----------------.**)))))))))" +
		"))))/@!##%#(%3,#&05%988>>>>>88888888-$+.............-+,-.--*+-+-.,/--,/,---.-.---.--.(.'''(%)))))))).-,,,,,,,,,,,,,," +
		"-!%*./.9>.*33,,P6-7523/9=4L3F2W2-/459443.2319.-="
	cl100kPairs = "" +
		"2iooonmjooinoooooooooooooooonooo=ooo@o,DimmD:mSgWmGa^ooUT~2Koooam\\oceJ@oooooooooonomZU]fno=oo\\hk,RdmmD:mSKWmGB^odTRi" +
		"oo/ookmJogSnkooomoooooooomn^c[oonooU3o,PImmD:m\\KgmF\\^m]]Ri  o+ @m        !  7    '   !    .      !\"mm'!m&2Gm)5IMLH3e" +
		"oooo omilooa3ijno[UononNognImoFj=mooiosqNmmoamkelmFjgna]bg#<i4*Qm6od83DXRcWSUkboNNoGMIHKF[=nOn,o,CDmmD:mSKWm@B^kYWJi" +
		"2KIY3am6D?833SHUDSU^^JNN8GMIH=F[=fG1,6,CDmmD:mSKWm@B^kYWJiofIm!am(\"?833>KSDSU!f5NN8 `IH 1[=fZ1,_,CDmmD:mSKWm@B^kYWJi" +
		"nnoo am6##$\"(M8!XC %)! 1\"X \"V)#!\">5&,)<CDmmD^mS\\Wm@B\\nY\\`ilooo$am'G =Q3NHUDSU^O`JN8GMIH=F[=gO1,6,CDmmD:mSKWm@B^kYWJi" +
		"mnfo3am6hF8:3W(UPSU^k@NN8GMIa=W[=fG!,?,CDmmD:mSKWm@B^kYWJijfln!am6D78.3K=MDSU5*JNN4GMIHTF^9fG1,_,CDmmD:mSKWm@B^kYWJi" +
		"`lco%am6J$83 OCUHSU^^JNN8DMIH=F[nTM1,6,CDmmD:mSKWm@B^kYWJiAnno\"amG538%>9:\"NL 0%%&'\"F,0'.\"#@*f((0(MWmmDvmeKWmBB^kYVJi" +
		"NNol am  i.   2  LU%c9NR;GGJH #\\C   46%ZemmH`moilmGE^kZUriSPXo am#U<8.:Q#!-G /\"2! @R@?H)5$Ff8.+8,CDmmD:mSmWmDB^i_YRi" +
		"nomo am1i??33XH? S lk!+SS?JIHhQn=Fn1,%,ahmmD`mScWmGBjocZ\\iNWno!am6:?#03=::D%8AZSS'89RIHBCI=fj;,6,CDmmD:mSKWm@B^kYWJi" +
		"P`oo am6!??(3?@GT]UWdWJN(GMIHS3]=f`+,6,CgmmD:mSKWm@B^kYWJi+Eoo#am6G?4Z3?;KVlU\"^f\\CS/ IH=8a=BmFiO,7DmmD`mSglmFB^kYWai" +
		"$$oo am6-\".*34)8DS#W  9N#GMPLM*X= S.,N,CYmmD_mS\\Wm@B^l]aNiF?oo%nm6/!$/30N?!*;0! NW^A ++m>n:&n ,J,CDmmD]m\\RWm@B^ke\\li" +
		"Dmoo am6 %%!3=NQ2NPf_ D`) M8H (6Lf&!P6,CPmmD:mSKWm@B^kYWJi\\jOo am62?83+W?LDS-T\\,PC+GMLH=?_=fGP,!,CDmmD:mSKWm@B^kYWJi" +
		"e[kn.am D?8L3dCUDSUI^ NN#\"G!H=F[=fG6,6,CDmmD:mSKWm@B^kYWJiH8oo7am6 ?*#3#:UDl^WHRNN>! I>##`hO?#,M,CDmmD:mSKWm@B^kYWJi" +
		"dcno am6G?#3&C)8eW&/ <)0 !GLL\"8n=hW(,6,C\\mmDZmSnWmGB^m[YYihVLo!am68?@33SHADSU^6Z!N8G-:H=@e=fS1,6,CDmmD:mSKWm@B^kYWJi" +
		"eki[3am6.CN:3cHUDS_^^^NN8GMYH=F[=WN1,6,CDmmD:mSKWm@B^kYWJi^mok'ami!V4*3!*UjGK1GF$NKGMI$F@!+%\"J,6,KDmmD_mSRbm@B^k[oii" +
		"TkS[!am6&?133CHXDSUT=@NN8GMIHQ;b=ff146,CDmmD:mSKWm@B^kYWJiehIo!am6>?831W\"&,$ U!J!\"&.8EH!JA=kn>,O<CDmmD:meKgm@B^kYWJi" +
		"hTab3am6L?P3:[AUDSUU^mNR8GMI[;1[=f[17>,CDmmD:mSKWm@B^kYWJi'*no$am=f?+33N$F@S ^#=ON8[MVH;Bf=9k/,C,QDmmF:mSJWmEB^kYWJi" +
		"oooo!am\\0k/B@RVFnX j$)[8YiQioVC$vk6LdQYT\\mmDGm\\fbmGB[oaVSincno amb'?*\"e=HU jU^[;YN8GMIAeI\\=hJ!,\",CDmmD:mSKWm@B^kYWJi" +
		"NkNo am6D?833EHWDSUl_J_P8,MIH:K[=fh1 6,CDmmD:mSKWm@B^lYWJiBKIo amg)?>3%QG(MU!70 *#!GJD:E\"]=C%3,>,CDmmD:mSKWm@B^kYWJi" +
		"GKcobam6J?833WHUDSU^^ZNN8GMIH=F[=fG1,6,CDmmD:mSKWm@B^kYWJi>KIomam6f?833SHkiSmmnJlT8GMIH=Ie=fW1,6,GDmmD:mSKWmBB^kYWJi" +
		"jlNoGam6[?8:3SHljS#^iJZNRGMIHHF[=fMN,B,C>mmD`mSKWm@T^kYWJi2KIY3am6D?833SHUDSU^^JNN8GMIH=F[=fG1,6,CDmmD:mSKWm@B^kYWJi" +
		"2KIY3am6D?833SHUDSU^^JNN8GMIH=F[=fG1,6,CDmmD:mSKWm@B^kYWJi2KIonam6D?833SHgUSk^gXaN8GMIY=F[=iG1,6,CDmmI:mSKWm@B^kYWJi" +
		"2KIonam_j?833lOnoSoooko]`GMWH=Fk=fR1,6,CimmD>mSKWmGB^kYWJi2KIY3am6D?833SHUDSU^^JNN8GMIH=F[=fG1,6,CDmmD:mSKWm@B^kYWJi" +
		"2KIooam6D?833hHlDSU^oinN8GMIHQF[=fG1,6,CDmmD:m^KWmDB^kYWJi2KIooamB[?833SHmgSoidOnN8GMIH=F[=gG1,6,CDmmD:mSTWm@B^kYWJi" +
		"2KIooam6D?833SHjDSljnJnN8GMIH=Fa=fG1,6,CDmmD:mSoYm@B^kYWJi2KIY3am6D?833SHUDSU^^JNN8GMIH=F[=fG1,6,CDmmD:mSKWm@B^kYWJi" +
		"anIo3am6D?833\\Hh]S'jLJTN_GMIH=F[=i^1,6,fDmmDhm\\KWmMBh4YX_i2\\Iolam6D?833SHUDSW^eJNN8GMIH=F[=fG1,6,CjmmD:mSKWm@8imYWJ~" +
		"2KIooam6f?833SHiDS_^iJNNZGMIH=Ff=fU1,6,CDmmD:mSRWmn~mnYWJdjo^m am6^?833SOUnSU^aJ]NSGMIHlFg=fo1<6,CDmmD:mSKWm-~lRb\\Ji" +
		"<m^odam6Z?833SHamSU^aXnNHGMIHLFg=fn1,6,CDmmD:mSKWmBB^oWgJi2PIooam6m?833VHUoSU^eb_NlGMIHkFn=fM1,6,CDmmD:mSKWmGB]obWJi" +
		"2KXomam6m?833XnnnSoioinNJGM^H=Fl=fG1,6,CDmmD:mSKWmFB^kYWTi2KIn>am6D?833SHUDSU^^JNN8GMIH=F[=fG1,6,CDmmD:mSKWmholkYWJn" +
		"2 \" :% #! !   . ?   \"!!!#!,&25&@5Q-!O!?J#QN';B*EQ5!?(5+/&;] '9 \":F#8:$% &EH>!*/%A!#0*K*54'?G+-X'#@)+G/$M%)# 1#&24=1#" +
		"! 0%   !5%$ #1#<3)%!1_$NF$2R\"0;%+!%LPJ#P27BA#E(!0E@(8&)UN$#*-7HW9@&KKI\"MJ>'Q?)A/\"K9/3 'K0L;8#   !  (1!!    !%   = D " +
		"= /BES#KV@/8!0KK->@4#X3QGMKM4-G,#<&B/EU=F/3=@]'+.F2N2U*/L!!!H/(?5!S8#(1.$\"&.5G 1($G'\"B&G+GA&.3#&G5#13X<<$V,E# $( C+D" +
		"%2:*$/AL! ,0Q?$9#$! :!\"1%$!   & 3 !\" \" %\"3%+(2#L2 (M/#,1'\"@\"! */47!4F;K$HOI@>LM#&3PAA:D. BB>QK'@\"%!-\"I'K&>%\"\"0H&\" +\"" +
		"3.%P0@)4#32!'X\"5-.&'7!! )6%K+60H%&$.@ $9A1(;$!S\"#\"&K*\"!=( \"!!!!;%('   (!I   f46#<$#;6F M$A(FJN)2,ALC25?VB=@P&K?-$M+!" +
		"'D;E0!\"9R$1/NH!F4R#8$5&8SE,MLH&FC$WJL!+RN/!1@P._3S&E2YZ&$!&\"N&#\"ON7Q$*<PJS'Gg0)T>VSBEWNRN)1OK=)#(  !.' 8\"'\"   1 /   " +
		"%)%  (&,'.#.!0#\"%#),(67-#8\"< !!:#4!,!&$ (6 \"+-$\";() *+-(\"<'\"$$!!)+#- *%($.>%%&0'/ *2%\"&\"')!4:<3## ('! !!/%(!\".!/!$*\"" +
		" 5!A%)\"$ $9'.!,<-! 3/\"-5!4'#*=? ! *$=+-2(!$3;A\"+/, @2\"$>1(5 %\"+\"/ < ,.\"!#$  !! 0)2!   ! +.! , 3 ; 3&'2!5<3-\" :4;(7?*" +
		" $6$##?=-&59$7+*&7,-(:;(;/5+@*0;,9%.(+ '/:%#2$*.!462\"+!22;$7#%0#\"1/'(3*!(+&!$/%&%!/!!,0*& \"# 7'0&'.!(0,;$!\"#!,!)&2% " +
		"1!+206!   *!< !#!+!!<>'7\"'+3-& !$ \"$%$<#\"#$3.9%@&*)9-@99==9 -449$$94 9<>77##$$!-*5*<\"!!#!#9 $ &#%1 9#0#  )4!)9! #8!$" +
		"!5\" %)05$)#+(0\"(5!$=\"&\"%#!9\"/!%2$1!-+ !! & ? ?' \" ;$9   $!8 !8!3&.\"&#=#?'&$4, 9(! 0 ;==6\"#$*)+1#&8*1  \"69\"1 <? %=<7(" +
		"3+$69;0<2)!<?'50)$=?: .>$9*9:6\"::8#42&5\"@2#.<9*< .\"=99$\"@39<80<$.;7(=<=('  !"
	cl100kRuns = "" +
		"----------------->GLF@D@4F<903/0-  e  d  d !Z$%I-/\"8$/!@%+!D\"0\"5-'---------------,./..//------------------------.&&&" +
		"&&&&&&&&&&&&-((--------------&),-----------/-+++++++++++++++-'((((((((((((((-%''''''''''''''-%/.............-$-./..." +
		"........-\").............-!,,,,,,,,,,,,,0-\",--------------...............-\"?'((())***B+,,-!%------------/-$(---------" +
		"-----!:--------------,//////////////-'++++++++++++++-&),,,,--------6-1).............-+//////////////-***************" +
		"--(0)0,-,,,,,,,,-9#/000000000000-&/-/-..........)$$$$$$$$$$$$$$$- -.............- 9--------------(,,,,,,,,,,,,,,.&''" +
		"''''''''''''-%2*/*-,,,,,,,,,,&&&&&&&&&&&&&&&.-2-------------.\"%-''''''''''''--------------------------------:9999999" +
		"99;999990.*0,/-/+,,+-)**----------------.-+/.++,#&------:766894695677777:<:678888:8786<8----------------:75333333333" +
		"333317!$$&$)&=/$'38(DCCEEEEECCCCCCCC-,)-------------0-000010//000/0/4343443443344443554.+-*)33333333/-,,,,,,,,,,,,,," +
		"/$).067:?079>X=E9/843427;1IBI7S;//126132-321D?40"
	gemmaPairs = "" +
		"?eooonmoooinooooooooooooooionoooXoooDoj3imm;,m1^FmiX]om`ic?Pooo[m\\oeeLAoooooooooonomZV`fnoXoo]klj@cmm;,m1/FmiG]omai^" +
		"oooooimJohUnjooomoooooooom^^d\\oodooV:ojGGmm;,mK/\\mbS]mWYi^##o olm!I/$ #6\"Q)!75%Q%6W%#$8$8lA' $+=l!\"mm  m  !m ]F1!1##" +
		"oooo!omnmoob5jjno\\UononMogtJmoHkXmoooontLmmoimiiombohnooijoonnm m5of;5E[ScYSUkboMMoHIJQMHbXnOn5oj1Bmm;,m1/FmMG]k@LM^" +
		"?PmWl[m5PI;55WISISU]]KMM[HIJQ@HbXfF45Dj1Bmm;,m1/FmMG]k@LM^ogmmn[m$#I;55ARLISU!f6MM[ aJQ 1bXfZ45+j1Bmm;,m1/FmMG]k@LM^" +
		"ooooo[m5 #&$)AT!^C &!\" !+Y #Y1\" &/(15)k1Bmm;gm1@FmMGan@li^oooon[m(F!@R5QISISU]N[IM[HIJQ@HbXhN45Dj1Bmm;,m1/FmMG]k@LM^" +
		"onnol[m5gN;<5Z(SSSU]-AMM[HIJH@QbXfF 5Ej1Bmm;,m1/FmMG]k@LM^oknnn[m5I:;05O>KISU4*KMMRHIJQeHcSfF45%j1Bmm;,m1/FmMG]k@LM^" +
		"olnnn[m5U$;5 _CSLSU]]KMM[EIJQ@HbdTM45Dj1Bmm;,m1/FmMG]k@LM^oonoo[mGDCC->&M!PL ,$&!''M=;*7!$R-CZG[`tUmm;gm`/FmTG]k@QM^" +
		"oooko[m  \"0 ! 2 %MU%c;MG?HDQQ \"cV ! :DJY&mmeimgihm-K]kHYi^fUmoo[m#UE;0;F!\"4H .\"2! JA@BQ=1#Sf7%3/j1Bmm;,m1.FmJG]:dji^" +
		"oonoo[m1iIB55WK;#S f\"!\"RV@FJQbQbXFm45 jfhmm;im1fFmiGbonoi^ooooo[m5HI$05H;;I'8AASR'[8PJQDEMXfj=5Dj1Bmm;,m1/FmMG]k@LM^" +
		"ooooo[m5+IB)5.@;V]UVcXIM2HIJQS-cXf`l5Dj1fmm;,m1/FmMG]k@LM^ooooo[m5NI7[5>7ISlU!].\\B?0 JQ@9VXBmHlFjHBmm;im1^lmcG]k@Lf^" +
		"ooooo[m5.#@*58)\"'S\"V  5MDHIBSO*QX!c=5Vj1Wmm;hm1UFmMG]k\\f[^moooonm50!)154F+ *;+! MW1C +0(?iZ&n 5Sj1Bmm;emK<FmMG]kN]g^" +
		"onooo[m5!%&!53NO'NPf_ #\\R'I9QE)6[f,!EDj1Nmm;,m1/FmMG]k@LM^mjmoo[m53I;5,c@AIS-Ta-OB=HIMQ@QdXfFR5\"j1Bmm;,m1/FmMG]k@LM^" +
		"innnm[m PI;S5fCSISUU] MM0\"C!Q@HbXfF95Dj1Bmm;,m1/FmMG]k@LM^oooon[m5 I*05%;SIkA/GSMMY! JX+#Qb_?'5Uj1Bmm;,m1/FmMG]k@LM^" +
		"ooooo[m5(I#5&9U?RK,1,$$0N!HMSg9WXiW)5Dj1[mm;`m1iFmXG]mNlc^nZmon[m5:IB55BI,ISU]6[ M[H!:Q@AhXfS45Dj1Bmm;,m1/FmMG]k@LM^" +
		"olnZl[m5GL@<5eISIS_]]^MM[HIZQ@HbXWN45Dj1Bmm;,m1/FmMG]k@LM^oooko[mm WB*5$;SjGK1?H$MnHIJ&FC r%!e5Dj>Bmm;hm1<UmMG]kNng^" +
		"olmZn[m5)I255ZIWISU`?JMM[HIJQ3!IXff4:Dj1Bmm;,m1/FmMG]k@LM^oimoo[m5AI;53T!%>$ T\"K!\"i/6EQ!JIX^\\/5Ok1Bmm;,m`/\\mMG]k@LM^" +
		"kXnal[m5VIS5;^<SISUT]mMQ[HIJ;D1bXf[4=Kj1Bmm;,m1/FmMG]k@LM^ooonn[m<fIW55@&BCS!] =CM[\\IWQ>6AX9k25NjHBmmQ,m1<Fm]G]k@LM^" +
		"ooooo[m]8lOjAmW)nX o##-8\\lNionengn MgXlN[mm;AmK\\UmhGbonVi^onnoo[m$'I/\"e)IS jU]Z<XM[HIJJa cXhC\"5(j1Bmm;,m1/FmMG]k@LM^" +
		"Ulmoo[m5PI;55HIVISUl_K5J[-IJQ<LbXfh4 Dj1Bmm;,m1/FmMG]k@LM^QPmoo[mj1I+5&<J PO 7.\"&#$HFEZH!<XC%)5)j1Bmm;,m1/FmMG]k@LM^" +
		"PPnon[m5UI;55ZISISU]][MM[HIJQ@HbXfF45Dj1Bmm;,m1/FmMG]k@LM^-Pmon[m5hI;55WIjjSmmnKlS[HIJQ@JhXfW45Dj+Bmm;,m1/FmTG]k@LM^" +
		"klmom[m5`I;<5WI8jS#]\"K<MdHIJQJHbXfMO5Mj1!mm;im1/FmMN]k@LM^?PmWl[m5PI;55WISISU]]KMM[HIJQ@HbXfF45Dj1Bmm;,m1/FmMG]k@LM^" +
		"?PmWl[m5PI;55WISISU]]KMM[HIJQ@HbXfF45Dj1Bmm;,m1/FmMG]k@LM^?Pmoo[m5PI;55WIgWSk]gY`M[HIJ]@HbXiF45Dj1Bmm?,m1/FmMG]k@LM^" +
		"?Pmoo[m`kI;55lOnoSoooko\\iHIWQ@HlXfR45Dj1imm;,m1/FmiG]k@LM^?PmWl[m5PI;55WISISU]]KMM[HIJQ@HbXfF45Dj1Bmm;,m1/FmMG]k@LM^" +
		"?Pmoo[m5PI;55iIlISU]oinM[HIJQSHbXfF45Dj1Bmm;,m2/Fm[G]k@LM^?Pmoo[mAaI;55WImhSohcPnM[HIJQ@HbXgF45Dj1Bmm;,m15FmMG]k@LM^" +
		"?Pmoo[m5PI;55WIjISlinKnM[HIJQ@HfXfF45Dj1Bmm;,m1iKmMG]k@LM^?PmWl[m5PI;55WISISU]]KMM[HIJQ@HbXfF45Dj1Bmm;,m1/FmMG]k@LM^" +
		"nnmol[m5PI;55^IJ_S'09KDMhHIJQ@HbXi^45DjnBmm;hmK/FmfGi$@ng^?_mon[m5PI;55WISISW]dKMM[HIJQ@HbXfF45Dj1imm@,m1/FmM1am@LMd" +
		"?Pmoo[m5hI;55WIiIS_]iKMMfHIJQ@HiXfT45Dj1Bmm;,m1<FmiYnn@LMlkommo[m5bI;55WBSnSU]`K\\MdHIJQVHiXfo4ADj1Bmm;,m1/Fm6Ui8ooM^" +
		"Gmmon[m5`I;55WI_mSU]`YnM`HIJQNHjXfn45Dj1Bmm;,m1/FmSG]o9`M^?Umoo[m5mI;55YISoSU]eb^MmHIJQkHnXfM45Dj1Bmm;,m1/FmiG`oUIM^" +
		"?Pmon[m5nI;55[nnnSohoinMaHI^Q@HmXfF45Dj1Bmm;,m1/FmdG]k@L_^?Pmnm[m5PI;55WISISU]]KMM[HIJQ@HbXfF45Dj1Bmm;,m1/FmeXik@LMd" +
		"'!$!?' #!&\" ! (!+    !'!!%\"%30!5:H\"!,!@< E*$19!@C+ V\"5', 8` !$ &)8!68!!!!9;6 \"(.B! 3)<\"\"2\"6=%)J#!7\")1'!I!&'!(#&*(%+\"" +
		"\" (\"   !)#&!\"&!E6)#!<=!26$7! 15!)! /K,\"B#A>5!J& $8/#.#\"GH!\"%$C>Y-;!BB/ B27\"5%$6-!L.$1!!6/F*((!  \"! $-\"& !  !%!  6\"A!" +
		"6!\"1;)!+@3#*!%12!6>1 #$=)7!1%-A(!+&9&I(3<&&G8?\")#<*:*C#&<\" !((\"61!;4!'+-\"\"\"-.L A!!>* :!<\"\"5&*+!#32\"5%A*@!H#1\" !% 9$-" +
		"#+-\"\"016!!%,5) 2\"$! 7!\"*\"#!!  \"!1 !\" $!\"!#!%,)!)*!&>1\"):! 8!#!\")45*,73W/8;;>@H;#/8:A+:=/ @\">(@\"2!\" +\"-\"8#5#!!')#!!$!" +
		",. 8&/$)!-*\"!?!0)+!#.#  $.!5$0&@#)!(.  -'*'?!!G\"!!\";%#!(!!\"\" !\"'#%(   $!A  !j95#6.!60? 7%+!AMH)A!/C2++.Y6;4:!$8. G&\"" +
		"\"?7;+\" 7=#,+@B!/*9\"1(2$6\\='B4;)F3'SB1 (C:)!9,<02\"L&=(BM#&!##I(%\"1F3V#&&U7[\"BN0#D68I6$5>(D&&A>)!!'   /&  \"'\"   ( ,   " +
		"+ #! -&-+!#1!1\"#& )*\"&9 !6!D ! /\"- '!'* %4  '!!!3$+ ,,*0#\"'#&$\"%#,$- &#*!0$%\"+*&7&0+$#\" &\")8,,) \" ()!   5!) #-!/\"#%\"" +
		"76#(: \"* #( -!'6.! 3*#*6\";)!%-/\"/ )#7\")3'!%5!L!.8.!K5'!2328!\"+. 1 *,0/ !#!  !  3 /\"   !!. ! - 3 + --'8!#,3,\" /A/).72" +
		" $:/##8#/(&4%5+.#%--)5*)4-+46 05!<%')' $$&&#)#.1#3:1!' !&5$%\"')\"\"2'%*,<! '$#!($'&!(*(/-*& \"! ,*4)&/$&/+5#!\"#03!%(&# " +
		"2!##&8!   ( 9  \"!&$ 60&5\"\"*30$!!' \"#!#.\"!'%1)6\"7:0.*#2<.+96 144<$9-8 *9!+%#*%#!+-A&8\"! \" $$!#!$\"$; $\")%!!'9!#> !\"7!!" +
		"\"'  #-$1&+#+#2!(5 #5*#!(\" 8!,!$)#% +* # %& 8$?.!! 7#.   %!$ -%#5+/!2 /! 80+;- 0+ +\" -!':\"\"(&7-- !7.07\" (8\"(!5: ,%8.9" +
		"+(09.9*5+-%=A' $;%97? 1<#:#<<!53:3#4.!5'A0\"%7.17 0#;<9#\"7:'4!)00/5-3)31\"/   "
	gemmaRuns = "" +
		"-----------------4GNNLFMBVD<3/4.-----------------###$$%%&&'')))~- &--------------$'*,----------------------------&''" +
		"''''''''''''-%&--------------!#*-----------:-+++++++++++++++-'''''''''''''''-%''''''''''''''-%(.............-$,./..-" +
		"---------\").............- +,,,,,,,,,,,,3-\".--------------...............-'&()))**++++,,L-!$--..........1-$(---------" +
		"-----'&--------------,//////////////-$..............-$/++++,,,-----:,1(--------------+//////////////----------------" +
		"-(.---.-,,,,,,,,-&)0000000000000-).,.,-/........,---------------- -.............-''--------------(,,,,,,,,,,,,,,-&))" +
		"))))))))))))-%*,2,-----------...............,(1+++++++++++++.%''''''''''''''---------------------------------&-)/0(7" +
		"$\"%%-(,&.#*+-.//-($&,$\"'----------------.&(1,/1%#'******.#(*)-*,((''''''--,+,,+,((*&'%&%----------------.*+)))))))))" +
		"))))-(!$$($((D,%)81*.----------------#+.............-*'+,-/+-.-.,-..-)0,..-.-.--...-.*-''''%********,.--------------" +
		"0#&0368AEZ1FO/D`<+D>;B<HEFi=U5020&15??0>9><BN6;>"
	claudePairs = "" +
		">gmmmmmmmmjrmmmmmmmmmmmmmmmmmmmm;mmmAm,Clmm^AmPlmmG<gmiQSl>PmmmPm^mbhJAmmmmmmmmmmmml[U]elm;mm\\jj,Lemm^AmPOmmG8gmlMQl" +
		"mm1mmgmLmcTrjmmmlmmmmmmmmlm^cZmmImmV4m,H>mm^AmhOmmD8gmiQTl   +,jm        !  7 Z  '   !    ,      \" mm=\"m@7mm)4_mmrAn" +
		"mmm!fLmlkmmb3gilmZUmmmmNmdlJkmEh;lmmmmrrJmmmkm[jmmCmnmmTblmmgblRm6mcE2FWScXQUjcmLNmFOJDJE\\;mOm-m,A>mm^AmPOmm?8gmeQQl" +
		">PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQlmfElmPm$\"?E23>RRFQU!b5LN7 `JD A\\;eY1-,,A>mm^AmPOmm?8gmeQQl" +
		"mmmmmPm6!$'!'<P!OB '&\" /&P\"#V2\"!\"BQT-(<A>mm^amPbmm?8cmeQ`lmmmmmPm'= O:3GJTFQU\\X6HN7FOJD=E\\;gN1-?,A>mm^AmPOmm?8gmeQQl" +
		"mmemkPm6%FE03V.TQQU\\-`LN7FOJa=P\\;eF!-F,A>mm^AmPOmm?8gmeQQlmjkmmPm6C^E;3V>LFQU4*KLN@FOJDdE\\CeF1-[,A>mm^AmPOmm?8gmeQQl" +
		"mkammPm6C*E2 ZOTJQU\\_KLN7COJD=E\\agX1-?,A>mm^AmPOmm?8gmeQQlOmlmmPmH33I%A%?!MO &$&!$\"FK-%*\"\"3)CT)\\)RTmm^amROmmA8gmePQl" +
		"mmmjmPm+ \"4 \" 7 \"UU%cILR2FH6D \"]I %!5?&Lfmm_cm[nmmF8gmiMpleUUmmPm>S=E4;1\"#6G 0!2 !5]E;D%0\"8e16,*,A>mm^AmPrmmC8gmjQQl" +
		"mmkmmPm6@?L23UG2#Q!( # Si>QJD]M+;El1-m,Ojmm^cmPjmmG8rmiQ\\lmmmmmPm6??i734;6F,M@NSQ'78SJD;Ca;ei;-?,A>mm^AmPOmm?8gmeQQl" +
		"mmmmmPm6!?L(3AO@T[UUdWHNbFOJDR=^;edk-?,A>mm^AmPOmm?8gmeQQlmmmmmPm6O?L\\3F<\\RdU _/[U`/&JD=8a;hlGmS,H>mm^cmPlmmE8gmeQyl" +
		"mmmmmPm6)jX)33]%%Q\"U! 4N#FOQHB-N; d.-R,AWmm^bmP_mm?8gmjNXlmmmmmmm6- [.3+OD!*=4\" LWZ@ ')k2mt,m -O,A>mm^`mQXmm?8gmeQkl" +
		"mlmmmPm6!(_!3.OP+MQf` F`*'OYDD()Ge'!Q?,A>mm^AmPOmm?8gmeQQlliKmmPm6=?E29GRTFQgSb5OK7FOMD=/_;eFQ-\",A>mm^AmPOmm?8gmeQQl" +
		"mljmkPm$C?E/36OTFQUU_ LN#&H!D=E\\;eF7-?,A>mm^AmPOmm?8gmeQQlmmmmmPm6 ??!3$7TFk^VHSLN5  JP$#`\\Og*-R,A>mm^AmPOmm?8gmeQQl" +
		"mmmmmPm6D?h2;@K3dV&. B!0 \"&MH-80;i@Q-?,A[mm^]mPOmmE8gmeQYlmYHmmPm63?]23;JBFQU\\LZ#N7F-:D=@_;e[1-?,A>mm^AmPOmm?8gmeQQl" +
		"mkfXkPm6B=X03MJTFQ_\\_^LN7FOYD=E\\;WN1-?,A>mm^AmPOmm?8gmeQQlmmmjmPmm UL%3\"*T\"XK1WG\"NAFOJ#=I)!%mO-?,Q>mm^bmPXmm?8gmiQnl" +
		"mkPXmPm6$?523OJXFQURFJLN7FOJD1;E;ee15?,A>mm^AmPOmm?8gmeQQlmhEmmPm66?E2;G##W# M!K!$e->ND#GF;Ym--9<A>mm^Am{Omm?8gmeQQl" +
		"iW_`kPm6L?Z2;ZGTFQU\\_lLR7FOJ[A1\\;e[18F,A>mm^AmPOmm?8gmeQQlmmmmmPm>(?]234#<AQ!\\#DBN7ZOVD;5>;9j0-I,H>mmYAmPNmm?8gmeQQl" +
		"mmmmmPm^ejmCVRW4lW 6 m(=ijSimSDmgg 1fUYJ[mm^LmhbmmF8cmeNRlmmlmmPm^'?6\"f&ITm'U\\aWXN7FOJ=d/];gI\"- ,A>mm^AmPOmm?8gmeQQl" +
		"TkKmmPm6C?E23DJVFQUj`K4P7,OJD9J\\;eg1 ?,A>mm^AmPOmm?8gmeQQlPPEmmPmj0?;2%7^\"FM\"61\")#%FQDUE!U;CH'-3,A>mm^AmPOmm?8gmeQQl" +
		"NP\\mmPm6J?E23VJTFQU\\_ZLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQlLPEmmPm6e?E23QJjhQllmKjT7FOJD=He;eX1-?,E>mm^AmPOmmA8gmeQQl" +
		"fkEmlPm6C?E83QJkiQU\\IKYNRFOJD=E\\;eM1-?,A>mm^cmPOmm?8gmeQQl>PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQl" +
		">PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQl>PEmmPm6C?E23QJfVQj\\gX_N7FOJX=E\\;hF1-?,A>mmcAmPOmm?8gmeQQl" +
		">PEmmPm`i?E23kPmmQmmmjm\\`FOWD=Ej;eR1-?,Ammm^FmPOmmG8gmeQQl>PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQl" +
		">PEmmPm6C?E23gJkFQU\\mhmN7FOJDPE\\;eF1-?,A>mm^AmUOmmY8gmeQQl>PEmmPmEW?E23QJkhQmhcQmN7FOJD=E\\;gF1-?,A>mm^AmPZmm?8gmeQQl" +
		">PEmmPm6C?E23QJ]FQibmKjN7FOJD=Ea;eF1-?,A>mm^AmPOmm?8gmeQQl>PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQl" +
		"mmEmkPm6C?E23[Jg]Qfi_KRNVFOJD=E\\;eT1-?,Q>mm^bmQOmmV8hmeQgl>^EmmPm6C?E23QJTFQU\\eKLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?/gmeQQl" +
		">PEmmPm6e?E23QJgFQ_\\hKLNMFOJD=Eb;eT1-?,A>mm^AmPXmmm8lmeQQm>]W`mPm6C?E23QJTXQU\\_K[NQFOJD=E\\;ef1-?,A>mm^AmPOmm?8gmmLQl" +
		">kEmmPm6V?E23QJiXQU\\_KmN7FOJD=Ec;eF1-?,A>mm^AmPOmm?8gmbWQl>PEemPm6C?E23UJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmnHQl" +
		">PVmmPm6l?E23VllmQmgmhmNJFO]D=Ek;eF1-?,A>mm^AmPOmmF8gmeQVl>PEmkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmmg8lmeQQm" +
		"8 \" ;) $\"&!   ,!2   !$!!\" *%.3%61D+!8!4?\">-'.8$>:,!H'<)4$7Q &8  (1\"04#! $78> A,)B!!3(B'\"1$9=-*M+\"*&(<&#J$2\"!,#/40E4\"" +
		"' *\"  !!3&!!\"-#D77$!*7#>7\"2\" ;4\"& #?C9#=.A48\"B'!,>7$/!(JF#\"(,7CQ%8$B?1 ?52%4?'))\"H<.0\"&5(C01(   !  C(*! !  !$!  1 @!" +
		"; /<>A&*A5&/\"-H5%2-0'L1A1>&@8c>,\",&A.?D5<+8AJF%/B?&C-H**@\"!!8,(70\"F0#%+'\"\"%+-I 2(\"@) <'J&7-$#.#!:2\"-)C49!8'<\"!#*!=,?" +
		"$,7(#*9M! *%C6#2$\"! 4#!/%& (! \" C !\" \" #\"/&'%(!),\")G)!,2##2#! )'5I E=2C3F=9;;E=!)/CB88<- =3B'2$0\"%!+#>$H&5$\"!+:&#!*#" +
		"=0$G.5$2 /*!%D /))##>#\" &7\"@#C,=#'#*2 $@7-'9#\"N#\"$'=&\" 2(!\"\" ! 4(+\"   * @   V>;\";&#37? G%+&?BD+5)5D=K';8<225'>7.'D(!" +
		"%T06(\"!8G\"+0??!)4M\"/$-$63:)?=?%L:#Y?0 4><-!694=W-3#G-KO('!$#I$%#DG-J#*6NBY%EZ//95JTH?E@3J,3H=;5$# !!/'  #'\"!! 3 6   " +
		"$2$#\",'$,!\",\"8\"%& 30&5%\"\"2!?(4 .\"-!(!%+ %6  )( \",$\" *&1($\"($''!%)+#. 1%+\"+$2#&)(7&%,$!'!.+#<7;-#% &)! !!.#&! :!2\"$%\"" +
		"+6\"-&$\"& #;*1\"'*-! 3$ ++!,(#'?C*.!$\"7.*$,!%<!F\"+:.!=4!\"!&(:1$(&&1 = 0>.@$&  \"* 5%1!     -!! /!3!>!71=A!5>30\"/;?=)--=" +
		" /8A$#BA2',1\"7+7'9)2.-;)*.45; 0:-:$/)) 0/()#6$-8\"-\"3\"*!61;%:\"\"5& /$$'+-!!(& !*/%#-') </*(!## 7/,+'/ &,,3#\"!&!-!3)+&\"" +
		"5!(2&7$\"# *!= (\"%,&5?B(6\"(',.'!8. &&\"&=!\"\"#/'6#E'*.*.E:!1>9 .:4,$$38 ;0C69'#&$!0)=*< !!7!$<!\"$'$$2 $#(*  ''!#0& +5 \"" +
		"\"+   ,$4%*$($4\"'-!$?*'$&#!9$/ &.\"1%%,!(#!$!B\"B/ $ 4#: ! $!$'::\"/&1\"6#.#A .-;# -) \"\" 1!28\"#'/)-9$&8)57 $28\"1 #0*%%+62" +
		"*7%8->0=3-!7B+6%)'@+< !9&9>:;8A;%7#72)6&B1#&-:* &1#4/,$>$)8#:)@;/*-(&#@(  )1"
	claudeRuns = "" +
		"-----------------9GHJCEE5H::..1/-$4.446346/'04/0-/\"7#/!@%+!D!0\"5--.*-------------,-.--..,,,,,,,,-----------------%&&" +
		"&&&&&&&&&&&&-('--------------'*,-----------,-(((((((((((((((,(''''''''''''''-%&&&&&&&&&&&&&&-%)/////////////-(,-.---" +
		"---------\")-------------- 2,,,,,,,,,,,,--!/------------------------------&)++++,,,,,,--6-!$------------0-#),--------" +
		"-----\"9--------------...............-'++++++++++++++-(),,,,--------0-$+.............-+//////////////-'''''''''''''''" +
		"-(,----,,,,,,,,,-9\"/000000000000-'1*1*1-........+%%%%%%%%%%%%%%%- ,.............-'',,,,,,,,,,,,,-(++++++++++++++-&''" +
		"''''''''''''-$.+0+-,,,,,,,,,,&&&&&&&&&&&&&&&43:4444444444444-&&&&&&&&&&&&&&&--------------------------------446218;5" +
		"11460163//*0-.+-)*,(+)')----------------42544333334444448474785584455555::::::::::::::::----------------::2111111111" +
		"1111:\\\"&&*&/*O8',?H,@@@@@@@@@@@@@@@@-----------------,----,**-,-+,**75<07-6666666666574/,/,)44444444----------------" +
		"4)2:;<EFN=J4geQ>=2C???A@D=HM];dL4)169436/<<8GMK+"
	claude47Pairs = "" +
		">gmmmmmmmmjrmmmmmmmmmmmmmmmmmmmm;mmmAm,Clmm^AmPlmmG<gmiQSl>PmmmPm^mbhJAmmmmmmmmmmmml[U]elm;mm\\jj,Lemm^AmPOmmG8gmlMQl" +
		"mm1mmgmLmcTrjmmmlmmmmmmmmlm^cZmmImmV4m,H>mm^AmhOmmD8gmiQTl   +,jm        !  7 Z  '   !    ,      \" mm=\"m@7mm)4_mmrAn" +
		"mmm!fLmlkmmb3gilmZUmmmmNmdlJkmEh;lmmmmrrJmmmkm[jmmCmnmmTblmmgblRm6mcE2FWScXQUjcmLNmFOJDJE\\;mOm-m,A>mm^AmPOmm?8gmeQQl" +
		">PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQlmfElmPm$\"?E23>RRFQU!b5LN7 `JD A\\;eY1-,,A>mm^AmPOmm?8gmeQQl" +
		"mmmmmPm6!$'!'<P!OB '&\" /&P\"#V2\"!\"BQT-(<A>mm^amPbmm?8cmeQ`lmmmmmPm'= O:3GJTFQU\\X6HN7FOJD=E\\;gN1-?,A>mm^AmPOmm?8gmeQQl" +
		"mmemkPm6%FE03V.TQQU\\-`LN7FOJa=P\\;eF!-F,A>mm^AmPOmm?8gmeQQlmjkmmPm6C^E;3V>LFQU4*KLN@FOJDdE\\CeF1-[,A>mm^AmPOmm?8gmeQQl" +
		"mkammPm6C*E2 ZOTJQU\\_KLN7COJD=E\\agX1-?,A>mm^AmPOmm?8gmeQQlOmlmmPmH33I%A%?!MO &$&!$\"FK-%*\"\"3)CT)\\)RTmm^amROmmA8gmePQl" +
		"mmmjmPm+ \"4 \" 7 \"UU%cILR2FH6D \"]I %!5?&Lfmm_cm[nmmF8gmiMpleUUmmPm>S=E4;1\"#6G 0!2 !5]E;D%0\"8e16,*,A>mm^AmPrmmC8gmjQQl" +
		"mmkmmPm6@?L23UG2#Q!( # Si>QJD]M+;El1-m,Ojmm^cmPjmmG8rmiQ\\lmmmmmPm6??i734;6F,M@NSQ'78SJD;Ca;ei;-?,A>mm^AmPOmm?8gmeQQl" +
		"mmmmmPm6!?L(3AO@T[UUdWHNbFOJDR=^;edk-?,A>mm^AmPOmm?8gmeQQlmmmmmPm6O?L\\3F<\\RdU _/[U`/&JD=8a;hlGmS,H>mm^cmPlmmE8gmeQyl" +
		"mmmmmPm6)jX)33]%%Q\"U! 4N#FOQHB-N; d.-R,AWmm^bmP_mm?8gmjNXlmmmmmmm6- [.3+OD!*=4\" LWZ@ ')k2mt,m -O,A>mm^`mQXmm?8gmeQkl" +
		"mlmmmPm6!(_!3.OP+MQf` F`*'OYDD()Ge'!Q?,A>mm^AmPOmm?8gmeQQlliKmmPm6=?E29GRTFQgSb5OK7FOMD=/_;eFQ-\",A>mm^AmPOmm?8gmeQQl" +
		"mljmkPm$C?E/36OTFQUU_ LN#&H!D=E\\;eF7-?,A>mm^AmPOmm?8gmeQQlmmmmmPm6 ??!3$7TFk^VHSLN5  JP$#`\\Og*-R,A>mm^AmPOmm?8gmeQQl" +
		"mmmmmPm6D?h2;@K3dV&. B!0 \"&MH-80;i@Q-?,A[mm^]mPOmmE8gmeQYlmYHmmPm63?]23;JBFQU\\LZ#N7F-:D=@_;e[1-?,A>mm^AmPOmm?8gmeQQl" +
		"mkfXkPm6B=X03MJTFQ_\\_^LN7FOYD=E\\;WN1-?,A>mm^AmPOmm?8gmeQQlmmmjmPmm UL%3\"*T\"XK1WG\"NAFOJ#=I)!%mO-?,Q>mm^bmPXmm?8gmiQnl" +
		"mkPXmPm6$?523OJXFQURFJLN7FOJD1;E;ee15?,A>mm^AmPOmm?8gmeQQlmhEmmPm66?E2;G##W# M!K!$e->ND#GF;Ym--9<A>mm^Am{Omm?8gmeQQl" +
		"iW_`kPm6L?Z2;ZGTFQU\\_lLR7FOJ[A1\\;e[18F,A>mm^AmPOmm?8gmeQQlmmmmmPm>(?]234#<AQ!\\#DBN7ZOVD;5>;9j0-I,H>mmYAmPNmm?8gmeQQl" +
		"mmmmmPm^ejmCVRW4lW 6 m(=ijSimSDmgg 1fUYJ[mm^LmhbmmF8cmeNRlmmlmmPm^'?6\"f&ITm'U\\aWXN7FOJ=d/];gI\"- ,A>mm^AmPOmm?8gmeQQl" +
		"TkKmmPm6C?E23DJVFQUj`K4P7,OJD9J\\;eg1 ?,A>mm^AmPOmm?8gmeQQlPPEmmPmj0?;2%7^\"FM\"61\")#%FQDUE!U;CH'-3,A>mm^AmPOmm?8gmeQQl" +
		"NP\\mmPm6J?E23VJTFQU\\_ZLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQlLPEmmPm6e?E23QJjhQllmKjT7FOJD=He;eX1-?,E>mm^AmPOmmA8gmeQQl" +
		"fkEmlPm6C?E83QJkiQU\\IKYNRFOJD=E\\;eM1-?,A>mm^cmPOmm?8gmeQQl>PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQl" +
		">PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQl>PEmmPm6C?E23QJfVQj\\gX_N7FOJX=E\\;hF1-?,A>mmcAmPOmm?8gmeQQl" +
		">PEmmPm`i?E23kPmmQmmmjm\\`FOWD=Ej;eR1-?,Ammm^FmPOmmG8gmeQQl>PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQl" +
		">PEmmPm6C?E23gJkFQU\\mhmN7FOJDPE\\;eF1-?,A>mm^AmUOmmY8gmeQQl>PEmmPmEW?E23QJkhQmhcQmN7FOJD=E\\;gF1-?,A>mm^AmPZmm?8gmeQQl" +
		">PEmmPm6C?E23QJ]FQibmKjN7FOJD=Ea;eF1-?,A>mm^AmPOmm?8gmeQQl>PEUkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmeQQl" +
		"mmEmkPm6C?E23[Jg]Qfi_KRNVFOJD=E\\;eT1-?,Q>mm^bmQOmmV8hmeQgl>^EmmPm6C?E23QJTFQU\\eKLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?/gmeQQl" +
		">PEmmPm6e?E23QJgFQ_\\hKLNMFOJD=Eb;eT1-?,A>mm^AmPXmmm8lmeQQm>]W`mPm6C?E23QJTXQU\\_K[NQFOJD=E\\;ef1-?,A>mm^AmPOmm?8gmmLQl" +
		">kEmmPm6V?E23QJiXQU\\_KmN7FOJD=Ec;eF1-?,A>mm^AmPOmm?8gmbWQl>PEemPm6C?E23UJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmm?8gmnHQl" +
		">PVmmPm6l?E23VllmQmgmhmNJFO]D=Ek;eF1-?,A>mm^AmPOmmF8gmeQVl>PEmkPm6C?E23QJTFQU\\_KLN7FOJD=E\\;eF1-?,A>mm^AmPOmmg8lmeQQm" +
		"?')'B0'+)-('''3(9'''(+(()'1,5:,=8K3(@(;F)E4.5?+EA3(O.C0;+>X(-@''/8)7;*('+>?E'H40I((:/I.)8+@D41T2)1-/C-*Q+9)(3*6;7L;)" +
		".'1)''((:-(()4*K>>+(1>*E>)9)'B;).(*FJ@+D5H;?)I.(3E>+6(/QM*)/3>JX,?+IF8'F<9,;F.00)OC57)-=0J78/'''(''J/1('(''(+(''8(G(" +
		"B'6CEI-1H<-6)4O<,:47.S8H8E-G?jE3)3-H5FK<C2?HQM,6IF-J4O11G)((?3/>7)M7*,2.)),24P'9/*G0'C.Q->4+*5*(A9)40J;@(?.C)(*1(D3F" +
		"+3>/*1@T('1,J=*9+)(';*(6,-'/(')'J'()')'*)6-.,/(03)0N0(39*+9*((0.<P'LD9K:MD@BBLD)06JI??C4'D:I.9+7),(2*E+O-<+)(2A-*(1*" +
		"D7+N6<+9'61(,K(600**E*)'->)G*J3D*.*19'+G>4.@*)U*)+.D-*'9/())'(';/2)'''1'G'(']EB)B-*:>F'N,2-FIK2<0<KDR.B?C99<.E>5.K/(" +
		",[7=/)(?N)27FF(0;T)6+4+=:A0FDF,SA*`F7';ED4(=@;D^4:+N4RV/.(+*P+,*KN4Q*1=VI`,La66@<Q[OFLG:Q3:ODB<+# !!/'  #'\"!! 3 6   " +
		"$2$#\",'$,!\",\"8\"%& 30&5%\"\"2!?(4 .\"-!(!%+ %6  )( \",$\" *&1($\"($''!%)+#. 1%+\"+$2#&)(7&%,$!'!.+#<7;-#% &)! !!.#&! :!2\"$%\"" +
		"+6\"-&$\"& #;*1\"'*-! 3$ ++!,(#'?C*.!$\"7.*$,!%<!F\"+:.!=4!\"!&(:1$(&&1 = 0>.@$&  \"* 5%1!     -!! /!3!>!71=A!5>30\"/;?=)--=" +
		" /8A$#BA2',1\"7+7'9)2.-;)*.45; 0:-:$/)) 0/()#6$-8\"-\"3\"*!61;%:\"\"5& /$$'+-!!(& !*/%#-') </*(!## 7/,+'/ &,,3#\"!&!-!3)+&\"" +
		"5!(2&7$\"# *!= (\"%,&5?B(6\"(',.'!8. &&\"&=!\"\"#/'6#E'*.*.E:!1>9 .:4,$$38 ;0C69'#&$!0)=*< !!7!$<!\"$'$$2 $#(*  ''!#0& +5 \"" +
		"\"+   ,$4%*$($4\"'-!$?*'$&#!9$/ &.\"1%%,!(#!$!B\"B/ $ 4#: ! $!$'::\"/&1\"6#.#A .-;# -) \"\" 1!28\"#'/)-9$&8)57 $28\"1 #0*%%+62" +
		"*7%8->0=3-!7B+6%)'@+< !9&9>:;8A;%7#72)6&B1#&-:* &1#4/,$>$)8#:)@;/*-(&#@(  )1"
	claude47Runs = "" +
		"-----------------9GHJCEE5H::..1/-$4.446346/'04/0-/\"7#/!@%+!D!0\"5--.*-------------,-.--..,,,,,,,,-----------------%&&" +
		"&&&&&&&&&&&&-('--------------'*,-----------,-(((((((((((((((,(''''''''''''''-%&&&&&&&&&&&&&&-%)/////////////-(,-.---" +
		"---------\")-------------- 2,,,,,,,,,,,,--!/------------------------------&)++++,,,,,,--6-!$------------0-#),--------" +
		"-----\"9--------------...............-'++++++++++++++-(),,,,--------0-$+.............-+//////////////-'''''''''''''''" +
		"-(,----,,,,,,,,,-9\"/000000000000-'1*1*1-........+%%%%%%%%%%%%%%%- ,.............-'',,,,,,,,,,,,,-(++++++++++++++-&''" +
		"''''''''''''-$.+0+-,,,,,,,,,,&&&&&&&&&&&&&&&43:4444444444444-&&&&&&&&&&&&&&&--------------------------------446218;5" +
		"11460163//*0-.+-)*,(+)')----------------42544333334444448474785584455555::::::::::::::::----------------::2111111111" +
		"1111:\\\"&&*&/*O8',?H,@@@@@@@@@@@@@@@@-----------------,----,**-,-+,**75<07-6666666666574/,/,)44444444----------------" +
		"4)2:;<EFN=J4geQ>=2C???A@D=HM];dL4)169436/<<8GMK+"
)
